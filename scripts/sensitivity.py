#!/usr/bin/env python3
"""How far the validation's figures move when one constant of the limit probe is changed, each by itself.

    python3 scripts/sensitivity.py                          # all of them, by 20 % both ways: an hour or two on two cores
    python3 scripts/sensitivity.py --of probe/hold.rs       # those of one file
    python3 scripts/sensitivity.py --whole --of hold.rs:KEEPS_S   # with all systems in place of a tenth

Builds `xtask validate` from a copy of the sources in which each constant can be scaled while it runs, and runs it on the tuning seeds: the
same systems each time, so that what differs is the constant's doing. A system that never asked for a constant is not run again for it, and
a record of which the laws were fitted is not fitted again where no constant of the fit is changed: what is printed is the same. Of a
constant between 0.5 and 1.7 the distance from 1 is scaled (0.98 of a rate becomes 0.976 and 0.984), and what is counted changes by one at
least. What was measured is kept in
target/sensitivity/seen.jsonl and not measured again, as long as the code of the probe and of the laws is the same. The table comes at the
end: per constant the row that moved most, in points.
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
    names = sorted(can)
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
                place = names.index(key)
                made = f"crate::scaling::of({place}, {value})" if kind == "f64" else f"crate::scaling::whole({place}, ({value}) as f64) as {kind}"
                parts.append(f"{m[1]}#[allow(non_snake_case)]\n{m[1]}{m[2]}fn {m[3]}() -> {kind} {{\n{made}\n}}\n")
            else:
                parts.append(m[0])
            at = m.end()
        parts.append(used(text[at:]))
        out[file] = "".join(parts)
    of_fits = ",".join(str(i) for i, n in enumerate(names) if n.startswith(OF_FITS))
    out["lib.rs"] += "\n#[allow(missing_docs, missing_debug_implementations)]\npub mod scaling;\n"
    quoted = ",".join(f'"{n}"' for n in names)
    out["scaling.rs"] = SCALING.replace("@NAMES@", quoted).replace("@OF_FITS@", of_fits)
    fits = "RIVALS.iter().flat_map(|law| fitted(&judge, *law, &guess)).collect()"
    contest = "pub fn contest(record: &LoadRecord) -> Option<LawContest> {"
    file = "laws/contest.rs"
    for text in (fits, contest):
        if out[file].count(text) != 1:
            sys.exit(f"{file} is not as this script knows it: `{text}`")
    out[file] = out[file].replace(fits, f"crate::scaling::fitted(record, || {fits})")
    out[file] = out[file].replace(contest, f"{contest}\n    crate::scaling::contested(record, || contested(record))\n}}\n\nfn contested(record: &LoadRecord) -> Option<LawContest> {{")
    out["laws/errors.rs"] = out["laws/errors.rs"].replace("pub(super) struct LawCandidate", "pub struct LawCandidate")
    out["laws/mod.rs"] = out["laws/mod.rs"].replace("pub use contest::", "pub use errors::LawCandidate;\npub use contest::")
    return out, names


# What a fit of the laws depends on, and of the laws only what is said of fits.
OF_FITS = ("laws/errors.rs", "laws/guess.rs", "laws/record.rs", "laws/replay.rs", "laws/search.rs")
SCALING = '''//! Constants that can be scaled: see scripts/sensitivity.py.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::laws::{LawCandidate, LawContest, LoadRecord};

pub const NAMES: &[&str] = &[@NAMES@];
const OF_FITS: &[usize] = &[@OF_FITS@];
pub type Touched = [u64; 8];

thread_local! {
    static CHANGED: Cell<(usize, f64)> = const { Cell::new((usize::MAX, 1.0)) };
    static TOUCHED: Cell<Touched> = const { Cell::new([0; 8]) };
}
static FROZEN: AtomicBool = AtomicBool::new(false);

pub fn set(id: usize, by: f64) {
    CHANGED.set((id, by));
}

pub fn take_touched() -> Touched {
    TOUCHED.replace([0; 8])
}

pub fn is_in(touched: &Touched, id: usize) -> bool {
    touched[id / 64] >> (id % 64) & 1 == 1
}

pub fn of(id: usize, value: f64) -> f64 {
    let (changed, by) = CHANGED.get();
    if changed == usize::MAX {
        let mut touched = TOUCHED.get();
        touched[id / 64] |= 1 << (id % 64);
        TOUCHED.set(touched);
    }
    match id == changed {
        // Of what is a little less, or a little more, than the whole, the distance from it.
        true if (0.5..1.7).contains(&value) && value != 1.0 => 1.0 + (value - 1.0) * by,
        true => value * by,
        false => value,
    }
}

/// What is counted changes by one at least.
pub fn whole(id: usize, value: f64) -> f64 {
    let (changed, by) = CHANGED.get();
    let scaled = of(id, value).round();
    if id == changed && scaled == value { value + (by - 1.0).signum() } else { scaled }
}

/// From now on constants are changed, and what was computed with them as they are is looked up.
pub fn freeze() {
    FROZEN.store(true, Ordering::Relaxed);
}

type Memo<T> = RwLock<Option<HashMap<u64, T>>>;
static FITS: Memo<Vec<LawCandidate>> = RwLock::new(None);
static CONTESTS: Memo<Option<LawContest>> = RwLock::new(None);

struct Hashed(std::hash::DefaultHasher);

impl std::fmt::Write for Hashed {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        self.0.write(s.as_bytes());
        Ok(())
    }
}

fn known<T: Clone>(memo: &Memo<T>, record: &LoadRecord, as_it_was: bool, compute: impl FnOnce() -> T) -> T {
    let frozen = FROZEN.load(Ordering::Relaxed);
    if frozen && !as_it_was {
        return compute();
    }
    let mut hashed = Hashed(std::hash::DefaultHasher::new());
    let _ = write!(hashed, "{record:?}");
    let key = hashed.0.finish();
    if frozen {
        let seen = memo.read().unwrap().as_ref().and_then(|m| m.get(&key).cloned());
        return seen.unwrap_or_else(compute);
    }
    let out = compute();
    memo.write().unwrap().get_or_insert_default().insert(key, out.clone());
    out
}

pub(crate) fn fitted(record: &LoadRecord, compute: impl FnOnce() -> Vec<LawCandidate>) -> Vec<LawCandidate> {
    known(&FITS, record, !OF_FITS.contains(&CHANGED.get().0), compute)
}

pub(crate) fn contested(record: &LoadRecord, compute: impl FnOnce() -> Option<LawContest>) -> Option<LawContest> {
    let of_laws = NAMES.get(CHANGED.get().0).is_some_and(|n| n.starts_with("laws/"));
    known(&CONTESTS, record, !of_laws, compute)
}
'''


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
        env = os.environ | {"CARGO_TARGET_DIR": str(WORK / "build"), "RUSTFLAGS": "--cfg scaled_constants -C target-cpu=native"}
        env |= {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
        cargo = lambda *what: subprocess.run(["cargo", *what, "--release", "--locked", "--message-format", "short"], cwd=copy, capture_output=True, text=True, env=env)
        done = cargo("check", "-p", "plimsoll-stats")
        if done.returncode == 0:
            done = cargo("build", "-p", "xtask")
        if done.returncode == 0:
            return WORK / "build" / "release" / "xtask", names
        more = set()
        for m in re.finditer(r"src/(\S+?):(\d+):\d+: error", done.stderr):
            lines = made.get(m[1], "").split("\n")
            near = lines[int(m[2]) - 1] if int(m[2]) <= len(lines) else ""
            more |= {n for n in names if re.search(rf"\b{n.split(':')[1]}\b", near)}
        if not more - excluded:
            sys.exit(done.stderr[-3000:])
        excluded |= more
    sys.exit("the sources did not build")


def rows(text):
    """Shares of the validation's rows, percent, and how many systems each is of."""
    out, part = {}, ""
    for line in text.splitlines():
        if line.startswith("!"):
            return {"the validation itself": line}
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) < 3 or cells[0].startswith("product, "):
            continue
        part = part if cells[0].startswith("–") else cells[0].split(":")[0]
        m = SHARE.search(cells[2])
        if m and int(m[2]) > 0:
            name = f"{part}: {cells[0].lstrip('– ')}" if cells[0].startswith("–") else cells[0]
            out[name] = (100 * int(m[1]) / int(m[2]), int(m[2]))
    return out


def tables(binary, parts, whole, threads, wanted):
    """The rows with constants as they are, under "", and those with each that is wanted, as soon as it was measured."""
    command = [str(binary), "validate", "--only", parts, "--tuning", "--scaled", "--threads", str(threads), *([] if whole else ["--quick"])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as p:
        p.stdin.write("".join(f"{w}\n" for w in wanted))
        p.stdin.close()
        of, text = None, []
        for line in p.stdout:
            if line.startswith("@"):
                of, text = line[1:].strip(), []
            elif line.strip():
                text.append(line)
            elif of is not None:
                yield of, rows("".join(text))
                of = None
    if p.returncode != 0:
        sys.exit(f"the validation ended with {p.returncode}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--of", default="", help="parts of file:NAME, with commas between them")
    p.add_argument("--parts", default="active,products", help="parts of the validation")
    p.add_argument("--by", type=float, default=20.0, help="percent")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--whole", action="store_true", help="all systems, where a tenth is the default")
    p.add_argument("--least", type=float, default=3.0, help="points that a row has to move by to be listed")
    a = p.parse_args()
    binary, names = build(WORK / "copy")
    code = hashlib.sha256("".join(code_of(f.read_text()) for d in SCOPE for f in sorted((ROOT / SRC / d).rglob("*.rs"))).encode()).hexdigest()[:12]
    seen = {}
    book = WORK / "seen.jsonl"
    if book.exists():
        for line in book.read_text().splitlines():
            e = json.loads(line)
            seen[tuple(e["of"])] = e["rows"]
    parts = a.of.split(",")
    asked = [n for n in names if any(part in n for part in parts)]
    # In the order in which they were asked for.
    asked.sort(key=lambda n: next(i for i, part in enumerate(parts) if part in n))
    both = (f"{1 - a.by / 100:g}", f"{1 + a.by / 100:g}")
    key = lambda scale: (code, a.parts, a.whole, scale)
    wanted = [f"{n} {by}" for n in asked for by in both if key(f"{n} {by}") not in seen]
    if wanted or key("") not in seen:
        for scale, table in tables(binary, a.parts, a.whole, a.threads, wanted):
            seen[key(scale)] = table
            with book.open("a") as f:
                f.write(json.dumps({"of": key(scale), "rows": table}) + "\n")
    before = seen[key("")]
    print(f"{len(asked)} of {len(names)} constants, by {a.by:g} % both ways; rows: {len(before)}", flush=True)
    moved = []
    for name in asked:
        worst = (0.0, "", 0.0, 0.0, 0)
        for by in both:
            after = seen[key(f"{name} {by}")]
            for row, was in before.items():
                now = after.get(row)
                if isinstance(now, (list, tuple)) and abs(now[0] - was[0]) > worst[0]:
                    worst = (abs(now[0] - was[0]), row, float(by), now[0] - was[0], was[1])
            if "the validation itself" in after:
                worst = (float("inf"), after["the validation itself"], float(by), float("nan"), 0)
        moved.append((name, worst))
        print(f"{name}: {worst[3]:+.1f} points of '{worst[1]}' ({worst[4]}) with {worst[2]:g} of it" if worst[1] else f"{name}: nothing", flush=True)
    far = sorted((m for m in moved if m[1][0] > a.least), key=lambda m: -m[1][0])
    print(f"\n{len(moved) - len(far)} of {len(moved)} constants move no row by more than {a.least:g} points.\n\n| constant | times | row | of | points |\n|---|---|---|---|---|")
    for name, w in far:
        print(f"| `{name}` | {w[2]:g} | {w[1]} | {w[4]} | {w[3]:+.1f} |")


if __name__ == "__main__":
    main()
