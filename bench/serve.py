"""`plimsoll serve` with a history of 10,000 runs, in Chromium: first paint of the list, and each filter from the change to the shown rows.

The runs are made by `cargo run -p plimsoll-index --example many` (kept below --dir, so that a second run of this needs no new
ones). The server has read them once before (--cold tells what the first reading takes); then each page is a new browser context. A
filter's time is from the change event to the frame after the rows are shown, in the page's own clock: server, JSON and drawing are in it.

`--live` instead measures what watching a run costs it: ABBA, pairs of runs of the embedded server with `--live` and a page open, and
without (`--reader stream`: in place of the page whatever reads its messages, so that a browser on the same cores is no part of it); the ratio of rates with its interval is that of `plimsoll compare`. `--agents N` watches one run of so many agents from its start to
its end (serve_fleet.py): memory of the page, CPU of its server, a cut, a late page. The last lines are a table for bench/README.md.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import serve_fleet
from harness import PLIMSOLL, ROOT

WEB = ROOT / "web"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

PAGES = r"""
import { chromium } from "playwright-core";
const [url, rounds, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"] });
const out = { paint: [], rows: [], filter: {}, view: {} };
const changes = [["label", "#f-label", "tier=t7"], ["op", "#f-op", "get"], ["validity", "#f-validity", "valid"]];
for (let i = 0; i < Number(rounds); i++) {
  const page = await (await browser.newContext({ viewport: { width: 1200, height: 900 } })).newPage();
  await page.goto(url);
  await page.waitForSelector("#view tbody tr", { timeout: 120000 });
  out.paint.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
  // Who filters has seen the list: what the page does first is done by then.
  await page.waitForLoadState("networkidle");
  await page.evaluate(() => new Promise((done) => requestIdleCallback(done)));
  out.rows.push(await page.evaluate(() => document.querySelectorAll("#view tbody tr").length));
  for (const [name, selector, value] of changes) {
    const ms = await page.evaluate(([selector, value]) => new Promise((done) => {
      const select = document.querySelector(selector);
      const begun = performance.now();
      document.addEventListener("plimsoll:found", () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun))), { once: true });
      select.value = value;
      select.dispatchEvent(new Event("change"));
    }), [selector, value]);
    (out.filter[name] ??= []).push(ms);
  }
  for (const view of ["pivot", "trend"]) {
    const ms = await page.evaluate((view) => new Promise((done) => {
      const begun = performance.now();
      document.addEventListener("plimsoll:found", () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun))), { once: true });
      [...document.querySelectorAll(".views a")].find((a) => a.textContent.toLowerCase() === view).click();
    }), view);
    (out.view[view] ??= []).push(ms);
  }
  await page.context().close();
}
await browser.close();
console.log(JSON.stringify(out));
"""

WATCH = r"""
import { chromium } from "playwright-core";
const [url, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"] });
await (await browser.newPage()).goto(url);
console.log("open");
process.stdin.resume();
process.stdin.on("end", async () => { await browser.close(); process.exit(0); });
"""


def node(script, *args, **more):
    """A script beside the page's own packages."""
    path = WEB / f".bench-{os.getpid()}.mjs"
    path.write_text(script)
    return subprocess.Popen(["node", path, *map(str, args)], stdout=subprocess.PIPE, text=True, **more), path


def load():
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def serve(runs, cache, first=False):
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    process = subprocess.Popen([PLIMSOLL, "serve", runs, "--listen", "0"], stderr=subprocess.PIPE, text=True, env=env)
    for line in process.stderr:
        if found := re.search(r"at (http://\S+)", line):
            break
    url, begun = found.group(1), time.monotonic()
    while True:
        try:
            with urllib.request.urlopen(f"{url}api/runs", timeout=60) as answer:
                number = json.load(answer)["all"]
                break
        except urllib.error.HTTPError as e:
            if e.code != 503:
                raise
    if first:
        print(f"first reading: {number} runs listed {time.monotonic() - begun:.1f} s after the start ({load()})", flush=True)
    return process, url


def history(args):
    runs, cache = Path(args.dir) / "runs", Path(args.dir) / "cache"
    if not runs.is_dir():
        subprocess.run(["cargo", "run", "--quiet", "-p", "plimsoll-index", "--example", "many", "--", args.dir, str(args.runs)], cwd=ROOT, check=True)
    if args.cold:
        shutil.rmtree(cache, ignore_errors=True)
    serve(runs, cache, first=True)[0].terminate()
    process, url = serve(runs, cache)
    try:
        pages, script = node(PAGES, url, args.rounds, CHROMIUM)
        out = json.loads(pages.communicate(timeout=1800)[0])
        script.unlink()
        memory = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text()).group(1)
    finally:
        process.terminate()
    print(f"\n{args.runs} runs, {args.rounds} pages, {load()}; server's memory at most {int(memory) // 1024} MiB\n")
    print("| what | median | most | goal |\n|---|---|---|---|")
    row = lambda name, ms, goal: print(f"| {name} | {statistics.median(ms):.0f} ms | {max(ms):.0f} ms | {goal} |")
    row(f"first paint of the list ({out['rows'][0]} rows)", out["paint"], "1.5 s")
    for name, ms in out["filter"].items():
        row(f"filter by {name}", ms, "100 ms")
    for name, ms in out["view"].items():
        row(f"{name} of what the filters leave", ms, "-")


STREAM = """import sys, threading, urllib.request
def read():
    got = 0
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
            for line in answer:
                got += len(line)
    except OSError:
        pass
    print(got)
reading = threading.Thread(target=read)
reading.start()
sys.stdin.read()
reading.join()
"""


def reader(url, how):
    """Who watches: Chromium with the page, or a program that takes what the page would be sent. With the script to be removed, where there is one."""
    if how == "page":
        return node(WATCH, url, CHROMIUM, stdin=subprocess.PIPE)
    address, _, query = url.partition("?")
    events = f"{address}/events" + (f"?{query}" if query else "")
    return subprocess.Popen(["python3", "-c", STREAM, events], stdin=subprocess.PIPE, stdout=subprocess.PIPE), None


def live(args):
    with tempfile.TemporaryDirectory() as dir:
        env = {**os.environ, "PLIMSOLL_RUNS": dir, "XDG_CACHE_HOME": f"{dir}/.cache"}
        sides = {True: [], False: []}
        # A B B A: drift favours neither.
        for i in range(args.pairs):
            for watched in (True, False) if i % 2 == 0 else (False, True):
                before = set(os.listdir(dir))
                command = [PLIMSOLL, *args.load.split(), "--duration", args.duration or "20s", *(["--live"] if watched else [])]
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
                page = script = None
                if watched:
                    for line in process.stderr:
                        if found := re.search(r"live at (http\S+)", line):
                            page, script = reader(found.group(1), args.reader)
                            break
                process.stderr.read()
                process.wait()
                if page:
                    page.stdin.close()
                    page.wait()
                    if script:
                        script.unlink()
                    elif not page.stdout.read().strip(b"0\n"):
                        raise SystemExit("no message was read: nothing was watched")
                (run,) = [d for d in set(os.listdir(dir)) - before if re.match(r"\d{8}-", d)]
                sides[watched].append(run)
                print(f"{'watched' if watched else 'alone'}: {run} ({load()})", flush=True)
        done = subprocess.run([PLIMSOLL, "compare", "--names", "watched,alone", *sides[True], "--", *sides[False]], env=env, text=True, capture_output=True)
        print(done.stdout)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", default="/tmp/plimsoll-bench-history")
    p.add_argument("--runs", type=int, default=10_000)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--cold", action="store_true", help="read all runs anew first")
    p.add_argument("--live", action="store_true", help="what watching a run costs it")
    p.add_argument("--reader", choices=("page", "stream"), default="page", help="of --live: who watches")
    p.add_argument("--pairs", type=int, default=10)
    p.add_argument("--agents", type=int, help="watch a run of a fleet of so many agents")
    p.add_argument("--agents-rate", default="320/s", help="what all agents together do")
    p.add_argument("--every", type=float, default=30, help="seconds from sample to sample of --agents")
    p.add_argument("--duration", help="of a run: 20s with --live, 10min with --agents unless given")
    p.add_argument("--load", default="object put --endpoint embedded --size 4KiB --concurrency 4 --warmup 2s")
    args = p.parse_args()
    if args.agents:
        args.duration = args.duration or "10min"
        serve_fleet.watched(args, lambda script, url: node(script, url, CHROMIUM, stdin=subprocess.PIPE), load)
    elif args.live:
        live(args)
    else:
        history(args)
