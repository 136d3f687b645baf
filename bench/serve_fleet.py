"""A fleet's run that is watched in Chromium from its start to its end (`serve.py --agents N`): what the page holds in memory, what serving
it costs, and whether a cut connection or a late page lacks anything.

Agents are processes of this machine; all read small objects from one `plimsoll target s3` at a low rate, since it is the watching that is
measured. The server of the page is inside the conductor: its CPU is that of its threads, by their names, from /proc, with those that ended.
The first page goes through a relay, which is closed for the cut, as a network would be. Memory is read after a collection of garbage.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from fleet import KEYS, Fleet
from harness import PLIMSOLL

# As /proc has the names of threads: pages and events, the look at the run, the history.
SERVER_THREADS = ("serves-pages", "follows-run", "reads-history")

PAGE = r"""
import { chromium } from "playwright-core";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [url, executablePath] = process.argv.slice(2);
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"];

// The way to `localhost` in this browser is through here.
const open = new Set();
let whole = true;
const relay = createServer((near) => {
  if (!whole) return near.destroy();
  const far = connect(Number(new URL(url).port), "127.0.0.1");
  for (const s of [near, far]) { open.add(s); s.on("error", () => {}); s.on("close", () => { open.delete(s); near.destroy(); far.destroy(); }); }
  near.pipe(far).pipe(near);
});
await new Promise((done) => relay.listen(0, "127.0.0.1", done));
const browser = await chromium.launch({ executablePath, args: [...args, `--host-resolver-rules=MAP localhost 127.0.0.1:${relay.address().port}`] });
const processes = await browser.newBrowserCDPSession();

/** Kept in the page: counts only, so that watching it adds nothing to its memory. */
function watch() {
  const seen = window.seen = { hellos: 0, missing: 0, last: null, shown: 0, points: {} };
  const note = (s, at) => { seen.points[JSON.stringify([s.stage, s.label, s.op])] = { n: at + s.ops_per_s.length, step: s.step_s, start: s.start_s }; };
  document.addEventListener("plimsoll:message", (e) => {
    const m = JSON.parse(e.detail);
    if (m.kind === "hello") {
      seen.hellos += 1;
      m.page.runs[0]?.series.forEach((s) => note(s, 0));
    } else if (m.seq > seen.last + 1) seen.missing += m.seq - seen.last - 1;
    if (m.kind === "run") m.run.series.forEach((s) => note(s, 0));
    if (m.kind === "points") m.series?.forEach((s) => note(s, s.at));
    seen.last = m.seq;
  });
  document.addEventListener("plimsoll:shown", (e) => { seen.shown = e.detail.seq; });
}

async function tab(address) {
  const page = await (await browser.newContext({ viewport: { width: 1200, height: 900 } })).newPage();
  const trouble = [];
  page.on("pageerror", (e) => trouble.push(String(e)));
  await page.addInitScript(watch);
  await page.goto(address);
  await page.waitForSelector("#now .headline", { timeout: 60000 });
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  return { page, session, trouble };
}

const covers = (points) => Object.fromEntries(Object.entries(points).map(([k, s]) => [k, s.start + s.n * s.step]));
/** Seconds of the run that the server has for each line, by a page that is made anew. */
async function truth() {
  const html = await (await fetch(url)).text();
  const run = JSON.parse(html.match(/id="plimsoll-data">([\s\S]*?)<\/script>/)[1]).runs[0];
  return covers(Object.fromEntries(run.series.map((s) => [JSON.stringify([s.stage, s.label, s.op]), { n: s.ops_per_s.length, step: s.step_s, start: s.start_s }])));
}
/** Until the page has, and shows, all that the server has now; how long that took. */
async function complete({ page }, limit_s = 30) {
  const [want, begun] = [await truth(), performance.now()];
  for (;;) {
    const seen = await page.evaluate(() => window.seen);
    const has = covers(seen.points);
    const lacks = Object.entries(want).filter(([k, s]) => !(has[k] >= s - 0.001));
    const after = (performance.now() - begun) / 1000;
    if ((lacks.length === 0 && seen.shown === seen.last) || after >= limit_s) {
      const most = (o) => Math.max(0, ...Object.values(o));
      return { lacks: lacks.length, shows_s: most(has), has_s: most(want), after_s: after, hellos: seen.hellos, missing: seen.missing };
    }
    await page.waitForTimeout(100);
  }
}

async function sample({ page, session }) {
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((m) => m.name === name).value;
  const { processInfo } = await processes.send("SystemInfo.getProcessInfo");
  const share = (pid) => { try { return Number(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").match(/^Pss:\s+(\d+)/m)[1]); } catch { return 0; } };
  return {
    heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners"), messages: await page.evaluate(() => window.seen.last),
    browser: processInfo.reduce((sum, p) => sum + share(p.id), 0) * 1024, browser_cpu: processInfo.reduce((sum, p) => sum + p.cpuTime, 0),
  };
}

const asText = (page) => page.evaluate(async () => {
  for (const d of document.querySelectorAll("main > details.fold")) d.open = true;
  await new Promise((done) => setTimeout(done, 1500));
  return document.getElementById("main").innerText.replace(/Nothing more will come: [^\n]*\n+/, "");
});

let first, late;
const todo = {
  open: async () => { first = await tab(url.replace("127.0.0.1", "localhost")); return complete(first); },
  sample: () => sample(first),
  cut: async () => {
    whole = false;
    open.forEach((s) => s.destroy());
    await first.page.waitForFunction(() => document.querySelector(".connection").textContent.includes("connection is cut"), null, { timeout: 30000 });
    return {};
  },
  mend: async () => {
    const { has_s, shows_s } = await complete(first, 0);
    whole = true;
    await first.page.waitForFunction(() => document.querySelector(".connection").textContent === "", null, { timeout: 30000 });
    return { ...await complete(first), behind_s: has_s - shows_s };
  },
  late: async () => { late = await tab(url); return complete(late); },
  end: async (report) => {
    const texts = [];
    for (const t of [first, late]) {
      await t.page.waitForFunction(() => document.getElementById("now") === null, null, { timeout: 60000 });
      texts.push(await asText(t.page));
    }
    const page = await (await browser.newContext({ viewport: { width: 1200, height: 900 } })).newPage();
    await page.goto(pathToFileURL(report).href);
    await page.waitForSelector("main .verdict");
    const whole = await asText(page);
    return { as_the_report: texts.map((t) => t === whole), trouble: [...first.trouble, ...late.trouble] };
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...more] = line.split(" ");
  let answer;
  try { answer = await todo[name](...more); } catch (e) { answer = { error: String(e) }; }
  console.log(JSON.stringify(answer));
}
await browser.close();
relay.close();
process.exit(0);
"""


class Watcher:
    """The browser, by orders on its standard input; each is answered by a line."""

    def __init__(self, url, start):
        self.process, self.script = start(PAGE, url)

    def ask(self, *order):
        self.process.stdin.write(" ".join(map(str, order)) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "the browser has ended"}')
        if "error" in answer:
            raise SystemExit(f"{order[0]}: {answer['error']}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.script.unlink()


class Threads:
    """CPU seconds of a process's threads, by their names. Looked at each second: a thread that ended is counted as it was last seen."""

    def __init__(self, pid):
        self.tasks, self.seen, self.over = Path(f"/proc/{pid}/task"), {}, threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def look(self):
        try:
            for task in list(self.tasks.iterdir()):
                try:
                    name = (task / "comm").read_text().strip()
                    self.seen[int(task.name)] = (name, int((task / "schedstat").read_text().split()[0]) / 1e9)
                except (OSError, ValueError, IndexError):
                    pass
        except OSError:
            pass

    def follow(self):
        while not self.over.wait(1):
            self.look()

    def cpu(self):
        """Of the server's threads, and of all others."""
        self.look()
        seen = list(self.seen.values())
        server = sum(s for name, s in seen if name in SERVER_THREADS)
        return server, sum(s for _, s in seen) - server


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|min)", text).groups()
    return int(number) * (1 if unit == "s" else 60)


def slope(rows, name):
    """Growth a minute over the second half of the samples, by least squares."""
    half = rows[len(rows) // 2:]
    return statistics.linear_regression([r["at"] / 60 for r in half], [r[name] for r in half]).slope if len(half) > 1 else float("nan")


def measure(run, watcher, args):
    """Samples, and what the cut and the late page came to."""
    length = seconds(args.duration)
    every = min(args.every, length / 6)
    # For ten minutes: cut after three, for one; the late page a minute before the end.
    steps = [(0.3 * length, "cut"), (0.3 * length + min(60, 0.1 * length), "mend"), (0.9 * length, "late")]
    steps += [(n * every, "sample") for n in range(1, int(0.97 * length / every) + 1)]
    threads, rows, told = Threads(run.pid), [], {}
    told["open"] = watcher.ask("open")
    begun = time.monotonic()
    before, at_before = threads.cpu(), 0.0
    for at, name in sorted(steps):
        time.sleep(max(0.0, begun + at - time.monotonic()))
        answer = watcher.ask(name)
        if name != "sample":
            told[name] = answer
            print(f"{time.monotonic() - begun:.0f} s: {name}: {answer}", flush=True)
            continue
        cpu, now = threads.cpu(), time.monotonic() - begun
        server, others = (100 * (b - a) / (now - at_before) for a, b in zip(before, cpu))
        rows.append(answer | {"at": now, "server": server, "others": others, "late": "late" in told})
        before, at_before = cpu, now
        print(f"{now:.0f} s: heap {answer['heap'] / 2**20:.2f} MiB, {answer['nodes']} nodes, {answer['listeners']} listeners, browser "
              f"{answer['browser'] / 2**20:.0f} MiB, message {answer['messages']}; server {server:.2f} % of a core, the conductor's other threads "
              f"{others:.2f} %", flush=True)
    threads.over.set()
    return rows, told


def table(args, rows, told, end):
    alone = [r for r in rows if not r["late"]]
    heap = lambda r: f"{r['heap'] / 2**20:.2f} MiB, {r['nodes']} nodes at {r['at']:.0f} s"
    cpu = [r["server"] for r in rows]
    whole = lambda t: (f"{t['shows_s']:.0f} s of {t['has_s']:.0f} s shown, {t['after_s']:.1f} s after; {t['missing']} messages missing, "
                       f"{t['hellos'] - 1} times sent all anew, {t['lacks']} lines incomplete")
    print(f"\n{args.agents} agents, {args.duration}, {args.agents_rate}, {args.load_said}\n")
    print("| what | seen | goal |\n|---|---|---|")
    print(f"| page's JS heap after a collection | {heap(rows[0])}; {heap(rows[len(rows) // 2])}; {heap(rows[-1])} | flat |")
    print(f"| its growth, second half | {slope(rows, 'heap') / 1024:+.1f} KiB, {slope(rows, 'nodes'):+.1f} nodes, {slope(rows, 'listeners'):+.1f} "
          "listeners a minute | flat |")
    print(f"| the browser's processes (Pss), one page | {alone[0]['browser'] / 2**20:.0f} MiB, at the end {alone[-1]['browser'] / 2**20:.0f} MiB; "
          f"{slope(alone, 'browser') / 2**20:+.2f} MiB a minute in the second half | flat |")
    print(f"| CPU of the server's threads | {statistics.mean(cpu):.2f} % of a core; most in a sample {max(cpu):.2f} %, last {cpu[-1]:.2f} % | 2 % |")
    print(f"| CPU of the conductor's other threads | {statistics.mean(r['others'] for r in rows):.2f} % of a core | - |")
    print(f"| after a cut of {min(60, 0.1 * seconds(args.duration)):.0f} s, {told['mend']['behind_s']:.0f} s behind at its end | {whole(told['mend'])} | nothing lost |")
    print(f"| a page opened late | {whole(told['late'])} | all that was before |")
    same = ["as the report" if s else "UNLIKE the report" for s in end["as_the_report"]]
    print(f"| at the end, as text | first page {same[0]}, late page {same[1]}; errors of scripts: {len(end['trouble'])} | as the report |")


def watched(args, start, load):
    """`start(script, url)` starts a script with Chromium beside the page's own packages."""
    with tempfile.TemporaryDirectory() as base, Fleet(args.agents, Path(base), patience=300) as fleet:
        print(f"{args.agents} agents wait for orders ({load()})", flush=True)
        data = Path(base) / "objects"
        s3 = subprocess.Popen([PLIMSOLL, "target", "s3", "--listen", "127.0.0.1:0", "--data", data, "--bucket", "bench", "--no-sync"],
                              env=os.environ | KEYS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        watcher = run = None
        try:
            endpoint = json.loads(s3.stdout.readline())["endpoint"]
            line = [PLIMSOLL, "object", "get", "--endpoint", endpoint, "--bucket", "bench", "--size", "4KiB", "--objects", str(4 * args.agents),
                    "--concurrency", str(args.agents), "--rate", args.agents_rate, "--warmup", "2s", "--duration", args.duration, "--fleet", "--live"]
            run = subprocess.Popen(line, env=fleet.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            said, at = [], None
            for text in run.stderr:
                said.append(text)
                if at := re.search(r"live at (http\S+)", text):
                    break
            if not at:
                raise SystemExit(f"no run: {''.join(said)}")
            threading.Thread(target=lambda: said.extend(run.stderr), daemon=True).start()
            watcher = Watcher(at[1], start)
            rows, told = measure(run, watcher, args)
            args.load_said = load()
            run.wait(300)
            if run.returncode not in (0, 3, 5):
                raise SystemExit(f"exit {run.returncode}: {''.join(said)}")
            name = at[1].rsplit("/", 1)[1].split("?")[0]
            report = Path(base) / "report.html"
            fleet.call("report", name, "-o", report)
            end = watcher.ask("end", report)
            print("".join(said[-12:]))
            table(args, rows, told, end)
        finally:
            if run and run.poll() is None:
                run.send_signal(signal.SIGINT)
                run.wait(60)
            if watcher:
                watcher.close()
            s3.terminate()
            s3.wait()
