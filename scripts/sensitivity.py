#!/usr/bin/env python3
"""How far the validation's figures move when one constant of the limit probe is changed, each by itself.

    python3 scripts/sensitivity.py                          # all of them, by 20 % both ways: a night
    python3 scripts/sensitivity.py --of probe/hold.rs       # those of one file
    python3 scripts/sensitivity.py --whole --of hold.rs:KEEPS_S   # with all systems in place of a quarter

Builds `xtask validate` from a copy of the sources in which each constant can be scaled when the program starts, and runs it on the tuning
seeds: the same systems each time, so that what differs is the constant's doing. Of a constant between 0.5 and 1.7 the distance from 1 is
scaled (0.98 of a rate becomes 0.976 and 0.984). What was measured is kept in target/sensitivity/seen.jsonl
and not measured again, as long as the sources are the same. The table comes at the end: per constant the row that moved most, in points.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "sensitivity"
SRC = "crates/stats/src"
SCOPE = ("probe/", "laws/")
TYPES = ("f64", "usize", "u32", "u64")
DEFINED = re.compile(r"^( *)((?:pub(?:\([^)]*\))? )?)const ([A-Z][A-Z0-9_]*): ([^=]+?) = (.*?);\n", re.M | re.S)
SHARE = re.compile(r"\((\d+) of (\d+)\)")
# Places in an array, and what only writes out: no decision.
NO_DECISION = {"laws/replay.rs:PERIOD", "laws/replay.rs:PHASE", "probe/summary.rs:CURVE", "probe/summary.rs:LARGE_ODDS", "probe/summary.rs:LINE_S"}


def code_of(text):
    """The text before its tests, which hold what the constants are."""
    at = re.search(r"#\[cfg\(test\)\]\nmod \w+ \{", text)
    return text[: at.start()] if at else text


def scaled(sources, excluded):
    """The sources with constants as functions, and the names of those: `file:NAME`."""
    definers = {}
    for file, text in sources.items():
        for m in DEFINED.finditer(text):
            definers.setdefault(m[3], []).append((file, m[2], m[4]))
    can = {}
    for name, of in definers.items():
        for file, vis, kind in of:
            key = f"{file}:{name}"
            if file.startswith(SCOPE) and kind in TYPES and key not in excluded:
                can[key] = (kind, bool(vis))
    # A constant that another one needs which stays a constant stays one, too.
    changed = True
    while changed:
        changed = False
        for file, text in sources.items():
            for m in DEFINED.finditer(text):
                if f"{file}:{m[3]}" in can:
                    continue
                for used in re.findall(r"\b[A-Z][A-Z0-9_]+\b", m[4] + m[5]):
                    for key in [k for k in can if k.endswith(f":{used}")]:
                        if key.startswith(f"{file}:") or can[key][1]:
                            del can[key]
                            changed = True
    out = {}
    for file, text in sources.items():
        own = {m[3] for m in DEFINED.finditer(text)}
        mine = {k.split(":")[1] for k in can if k.startswith(f"{file}:")}
        # Of other files: who makes it known, if only one does.
        for name in {k.split(":")[1] for k in can} - own:
            public = [f for f, vis, _ in definers[name] if vis]
            if len(public) == 1 and f"{public[0]}:{name}" in can:
                mine.add(name)

        def used(code):
            lines = []
            in_use = False
            for line in code.split("\n"):
                bare = line.lstrip()
                in_use |= bool(re.match(r"(pub(\([^)]*\))? )?use ", bare))
                if not in_use and not bare.startswith("//"):
                    line = re.sub(r"(?<!\w)([A-Z][A-Z0-9_]*)\b(?![(:!])", lambda m: f"{m[1]}()" if m[1] in mine else m[1], line)
                in_use &= not bare.endswith(";")
                lines.append(line)
            return "\n".join(lines)

        parts, at = [], 0
        for m in DEFINED.finditer(text):
            parts.append(used(text[at:m.start()]))
            key = f"{file}:{m[3]}"
            if key in can:
                kind = m[4]
                value = used(m[5])
                made = f"crate::scaled(\"{key}\", {value})" if kind == "f64" else f"crate::scaled(\"{key}\", ({value}) as f64).round() as {kind}"
                parts.append(f"{m[1]}#[allow(non_snake_case)]\n{m[1]}{m[2]}fn {m[3]}() -> {kind} {{\n"
                             f"static V: std::sync::OnceLock<{kind}> = std::sync::OnceLock::new();\n*V.get_or_init(|| {made})\n}}\n")
            else:
                parts.append(m[0])
            at = m.end()
        parts.append(used(text[at:]))
        out[file] = "".join(parts)
    out["lib.rs"] += '''
fn scaled(name: &str, value: f64) -> f64 {
    match std::env::var("SCALED").ok().and_then(|s| s.split_once('=').map(|(n, by)| (n.to_owned(), by.parse::<f64>().ok()))) {
        // Of what is a little less, or a little more, than the whole, the distance from it.
        Some((n, Some(by))) if n == name && (0.5..1.7).contains(&value) && value != 1.0 => 1.0 + (value - 1.0) * by,
        Some((n, Some(by))) if n == name => value * by,
        _ => value,
    }
}
'''
    return out, sorted(can)


def build(copy):
    """The validation whose constants can be scaled. A constant that the compiler needs as one is left as it is."""
    shutil.rmtree(copy, ignore_errors=True)
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    sources = {}
    for path in sorted((copy / SRC).rglob("*.rs")):
        file = str(path.relative_to(copy / SRC))
        sources[file] = code_of(path.read_text())
    excluded = set(NO_DECISION)
    for _ in range(20):
        made, names = scaled(sources, excluded)
        for file, text in made.items():
            (copy / SRC / file).write_text(text)
        done = subprocess.run(["cargo", "build", "-p", "xtask", "--locked", "--message-format", "short"], cwd=copy, capture_output=True, text=True,
                              env=os.environ | {"CARGO_TARGET_DIR": str(WORK / "build")})
        if done.returncode == 0:
            return WORK / "build" / "debug" / "xtask", names
        more = set()
        for m in re.finditer(r"src/(\S+?):(\d+):\d+: error", done.stderr):
            lines = made.get(m[1], "").split("\n")
            near = lines[int(m[2]) - 1] if int(m[2]) <= len(lines) else ""
            more |= {n for n in names if re.search(rf"\b{n.split(':')[1]}\b", near)}
        if not more - excluded:
            sys.exit(done.stderr[-3000:])
        excluded |= more
    sys.exit("the sources did not build")


def rows(binary, parts, whole, threads, scale=None):
    """Shares of the validation's rows, percent, and how many systems each is of."""
    command = [str(binary), "validate", "--only", parts, "--tuning", "--threads", str(threads), *([] if whole else ["--quick"])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | ({"SCALED": scale} if scale else {}))
    if done.returncode not in (0, 1):
        return {"the validation itself": f"ended with {done.returncode}: {done.stderr[-200:]}"}
    out, part = {}, ""
    for line in done.stdout.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) < 3 or cells[0].startswith("product, "):
            continue
        part = part if cells[0].startswith("–") else cells[0].split(":")[0]
        m = SHARE.search(cells[2])
        if m and int(m[2]) > 0:
            name = f"{part}: {cells[0].lstrip('– ')}" if cells[0].startswith("–") else cells[0]
            out[name] = (100 * int(m[1]) / int(m[2]), int(m[2]))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--of", default="", help="parts of file:NAME, with commas between them")
    p.add_argument("--parts", default="active,products", help="parts of the validation")
    p.add_argument("--by", type=float, default=20.0, help="percent")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--whole", action="store_true", help="all systems, where a quarter is the default")
    p.add_argument("--least", type=float, default=3.0, help="points that a row has to move by to be listed")
    a = p.parse_args()
    binary, names = build(WORK / "copy")
    code = hashlib.sha256("".join(f.read_text() for d in SCOPE for f in sorted((ROOT / SRC / d).rglob("*.rs"))).encode()).hexdigest()[:12]
    seen = {}
    book = WORK / "seen.jsonl"
    if book.exists():
        for line in book.read_text().splitlines():
            e = json.loads(line)
            seen[tuple(e["of"])] = e["rows"]

    def measured(scale):
        of = (code, a.parts, a.whole, scale)
        if of not in seen:
            seen[of] = rows(binary, a.parts, a.whole, a.threads, scale)
            with book.open("a") as f:
                f.write(json.dumps({"of": of, "rows": seen[of]}) + "\n")
        return seen[of]

    before = measured(None)
    parts = a.of.split(",")
    asked = [n for n in names if any(part in n for part in parts)]
    # In the order in which they were asked for.
    asked.sort(key=lambda n: next(i for i, part in enumerate(parts) if part in n))
    print(f"{len(asked)} of {len(names)} constants, by {a.by:g} % both ways; rows: {len(before)}", flush=True)
    moved = []
    for name in asked:
        worst = (0.0, "", 0.0, 0.0, 0)
        for by in (1 - a.by / 100, 1 + a.by / 100):
            after = measured(f"{name}={by:g}")
            for row, was in before.items():
                now = after.get(row)
                if isinstance(now, (list, tuple)) and abs(now[0] - was[0]) > worst[0]:
                    worst = (abs(now[0] - was[0]), row, by, now[0] - was[0], was[1])
            if "the validation itself" in after:
                worst = (float("inf"), after["the validation itself"], by, float("nan"), 0)
        moved.append((name, worst))
        print(f"{name}: {worst[3]:+.1f} points of '{worst[1]}' ({worst[4]}) with {worst[2]:g} of it" if worst[1] else f"{name}: nothing", flush=True)
    far = sorted((m for m in moved if m[1][0] > a.least), key=lambda m: -m[1][0])
    print(f"\n{len(moved) - len(far)} of {len(moved)} constants move no row by more than {a.least:g} points.\n\n| constant | times | row | of | points |\n|---|---|---|---|---|")
    for name, w in far:
        print(f"| `{name}` | {w[2]:g} | {w[1]} | {w[4]} | {w[3]:+.1f} |")


if __name__ == "__main__":
    main()
