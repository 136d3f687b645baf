// What a run does just now: its last second, its stage so far, what these figures lack, and the way to end it.
import { h } from "./dom";
import { count, isFailure, isThrottled, latency, MIB, percent, seconds, significant, sumOutcomes } from "./format";
import type { Now, Run } from "./feed";
import { own } from "./keyed";
import type { Section } from "./sections";

/** Whoever keeps the connection asks the server for it. */
export const askToStop = (): boolean => document.dispatchEvent(new CustomEvent("plimsoll:stop"));

/** Whether this page can end its run: its server says so in the page's head. */
const stoppable = (): boolean => document.querySelector("meta[name=plimsoll-stop]") !== null;

const known = (x: number | null, text: (x: number) => string): string => (x === null ? "not known yet" : text(x));

function place(now: Now): string {
  if (now.stage_number === 0) return "No load yet";
  const left = now.remaining_s === null ? "" : `, ${seconds(now.remaining_s)} to come`;
  return `Stage ${now.stage_number}, ${now.stage}: ${now.phase}, ${seconds(now.elapsed_s)} of load on record${left}`;
}

function outcomes(all: Record<string, number>): string {
  const part = (name: string, pick: (n: string) => boolean) => {
    const each = Object.entries(all).filter(([n, k]) => pick(n) && k > 0).map(([n, k]) => `${n} ${count(k)}`);
    return `${name} ${count(sumOutcomes(all, pick))}${each.length ? ` (${each.join(", ")})` : ""}`;
  };
  return `ok ${count(all["ok"] ?? 0)}; ${part("throttled", isThrottled)}; ${part("failed", isFailure)}`;
}

function figure(what: string, value: string): HTMLElement {
  const [number, ...unit] = value.split(" ");
  const isNumber = /^[\d.,]+$/.test(number!);
  return h("div", { class: "figure" }, h("dt", {}, what), h("dd", {}, isNumber ? h("span", { class: "value" }, number!) : value, isNumber ? h("span", { class: "unit" }, ` ${unit.join(" ")}`) : null));
}

function stopButton(): HTMLElement {
  const asked = () => {
    if (window.confirm("End this run now? It ends as by Ctrl-C: the result so far is written, and what the run made is removed.")) askToStop();
  };
  return h("p", { class: "tools" }, h("button", { type: "button", id: "stop", click: asked }, "Stop the run"), own(h("span", { id: "stop-said", role: "status" })));
}

function body(run: Run, now: Now): (Node | null)[] {
  const rate = run.block ? "IOPS" : "op/s";
  const so = now.phase === "warm-up" ? "of the warm-up so far" : "of this stage so far";
  return [
    h("p", { class: "note place" }, place(now), now.doing ? h("span", {}, ` ${now.doing}`) : null),
    h("dl", { class: "headline now" },
      figure("Rate, last second", known(now.ops_per_s, (x) => `${significant(x, 4)} ${rate}`)),
      // Before anything is known its place is kept; ops that move no bytes have none.
      now.bytes_per_s === null && now.ops_per_s !== null ? null : figure("Throughput, last second", known(now.bytes_per_s, (x) => `${significant(x / MIB, 4)} MiB/s`)),
      figure("In flight, last second", known(now.in_flight, (x) => `${significant(x, 3)} ops`)),
      figure(`Median response ${so}`, known(now.p50_ns, latency)),
      figure(`p99 response ${so}`, known(now.p99_ns, latency)),
      figure(`p99.9 response ${so}`, known(now.p999_ns, latency)),
      figure("Client busy, last second", known(now.busy_fraction, percent))),
    // What the figures lack comes and goes: it stands where it moves none of them.
    h("div", { class: "foot" }, h("p", {}, `Ops ${so}: ${outcomes(now.outcomes)}`), stoppable() ? stopButton() : null,
      now.missing.length ? h("div", { role: "alert" }, ...now.missing.map((m) => h("p", { class: "warning" }, m))) : null),
    now.other_agents ? h("p", { class: "note" }, now.other_agents) : null,
  ];
}

/** Of a run that goes on. */
export const nowSection = (run: Run): Section => ({
  id: "now", title: "Now", inputs: [run.now, run.live, run.block], body: () => (run.live && run.now ? body(run, run.now) : [null]),
});
