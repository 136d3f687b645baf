#!/usr/bin/env python3
"""Holds DEPENDENCIES.md against what is really depended on: a line for each crate and package, none too many, each
crate's weight and licence as cargo knows them, and no crate named in the workspace that nobody uses. And of all crates,
those that others bring included: a licence that we may ship under, the registry as their only source, none that is banned.
That is what `cargo deny check licenses bans sources` checks; its fourth check, advisories, needs a database from the network
(DEPENDENCIES.md says how to ask it)."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Licences that a binary under Apache-2.0 may contain.
LICENCES = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD",
            "Unicode-3.0", "CC0-1.0", "Unlicense", "BSL-1.0", "CDLA-Permissive-2.0", "MIT-0", "NCSA"}
# What ARCHITECTURE.md keeps out: too heavy, or a second TLS.
BANNED = {"aws-sdk-s3", "aws-config", "datafusion", "arrow", "duckdb", "object_store", "openssl", "openssl-sys", "native-tls"}
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
SECTIONS = ("dependencies", "dev-dependencies", "build-dependencies")


def manifest(path):
    return tomllib.loads((ROOT / path).read_text())


def crates():
    """Direct dependencies of our crates from outside, and what the workspace names without any use."""
    named = {n for n in manifest("Cargo.toml")["workspace"]["dependencies"] if not n.startswith("plimsoll-")}
    used = set()
    for path in [*ROOT.glob("crates/*/Cargo.toml"), ROOT / "xtask/Cargo.toml", ROOT / "fuzz/Cargo.toml"]:
        toml = tomllib.loads(path.read_text())
        parts = [toml, *toml.get("target", {}).values()]
        used |= {n for part in parts for s in SECTIONS for n in part.get(s, {}) if not n.startswith("plimsoll-")}
    return used, named - used


def packages():
    web = json.loads((ROOT / "web/package.json").read_text())
    return {n for s in ("dependencies", "devDependencies") for n in web.get(s, {})}


def metadata():
    """What cargo knows of the workspace, on Linux."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)


def permitted(expression):
    """Whether one choice of an SPDX expression is of licences that we may ship under."""
    text = expression.replace("/", " OR ").strip()
    while text.startswith("(") and text.endswith(")") and text.find(")") == len(text) - 1:
        text = text[1:-1]
    # OR binds less than AND; parentheses hold a whole choice.
    for word, rule in ((" OR ", any), (" AND ", all)):
        parts = split(text, word)
        if len(parts) > 1:
            return rule(permitted(p) for p in parts)
    return text in LICENCES


def split(text, word):
    """Parts between words that stand outside of parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and text.startswith(word, i):
            parts.append(text[start:i])
            start = i + len(word)
    return [*parts, text[start:]]


def of_all(meta):
    """What is wrong with any crate, however it came in."""
    for package in meta["packages"]:
        name = f"{package['name']} {package['version']}"
        if package["source"] not in (None, REGISTRY):
            yield f"{name} comes from {package['source']}, not from the registry"
        if not permitted(package["license"] or "none"):
            yield f"{name} is under {package['license'] or 'no licence'}, which is not among those that we ship"
        if package["name"] in BANNED:
            yield f"{name} is banned (ARCHITECTURE.md)"


def known(meta):
    """Weight and licence of each crate that one of ours depends on directly, on Linux."""
    packages = {p["id"]: p for p in meta["packages"]}
    nodes = {n["id"]: n["deps"] for n in meta["resolve"]["nodes"]}
    direct = {d["pkg"] for n in nodes if packages[n]["source"] is None for d in nodes[n]}
    found = {}
    for package in (packages[i] for i in direct):
        licence = (package["license"] or "").replace("/", " OR ")
        found[package["name"]] = (len(closure(package["id"], nodes)), licence)
    return found


def closure(start, nodes):
    """What a crate brings: itself, its dependencies, build scripts and macros; not what only its tests need."""
    seen, todo = set(), [start]
    while todo:
        package = todo.pop()
        if package not in seen:
            seen.add(package)
            todo += [d["pkg"] for d in nodes[package] if any(k["kind"] != "dev" for k in d["dep_kinds"])]
    return seen


def documented():
    """Name to (weight, licence), from the tables. `a, b` in the first column is two names, whose weights stand in the
    same order; their licences, too, where there are several (`x; y`)."""
    rows = {}
    for line in (ROOT / "DEPENDENCIES.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) < 3 or re.fullmatch(r"-+|crate|package", cells[0]):
            continue
        names, weights, licences = cells[0].split(", "), cells[2].split(", "), cells[-1].split("; ")
        for i, name in enumerate(names):
            licence = licences[i] if len(licences) == len(names) else licences[0]
            rows[name] = (weights[i] if i < len(weights) else "", licence)
    return rows


def problems():
    used, idle = crates()
    meta = metadata()
    rows, web, facts = documented(), packages(), known(meta)
    yield from of_all(meta)
    for name in sorted(idle):
        yield f"Cargo.toml names {name}, and no crate uses it"
    for name in sorted((used | web) - rows.keys()):
        yield f"{name} has no line in DEPENDENCIES.md"
    for name in sorted(rows.keys() - used - web):
        yield f"DEPENDENCIES.md has a line for {name}, which nothing depends on"
    for name in sorted(used & rows.keys()):
        weight, licence = facts[name]
        if rows[name] != (str(weight), licence):
            yield f"{name} is {weight} crates under {licence}; DEPENDENCIES.md says {rows[name]}"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found else 0)
