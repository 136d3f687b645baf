// What each view of the history shows of an answer. Each figure has a link to the run that it is from.
import { h, listenLike } from "./dom";
import type { Estimate } from "./feed";
import { count, counted, estimate, latency, MIB, MISSING, SIGNS, significant } from "./format";
import type { CompareAnswer, ListAnswer, PivotAnswer, PivotCell, TrendAnswer } from "./history-data";
import { allTo, FIGURES, MOST_OF_A_SIDE, sideText, toggled, type Figure, type HistoryState } from "./history-state";
import { keyed, morphChildren, type Living } from "./keyed";
import { trendDrawing } from "./history-trend";
import { sparkline } from "./sparkline";

/** Changes what is shown, and the address with it. */
export type Go = (change: Partial<HistoryState>) => void;

export const runLink = (id: string, text = id): HTMLElement => h("a", { href: `/runs/${encodeURIComponent(id)}` }, text);

/** `2026-11-24 15:36`, UTC. */
export const minute = (at: string): string => at.slice(0, 16).replace("T", " ");

/** A figure with its unit. `range`: its ends are the least and the most, and no interval. */
export function figureText(figure: Figure, e: Estimate | null, range = false): string {
  if (!e) return MISSING;
  if (figure === "ops_per_s") return `${estimate(e)} op/s`;
  if (figure === "bytes_per_s") return `${estimate(e, 1 / MIB)} MiB/s`;
  if (e.low === e.high) return latency(e.value);
  const [unit, f] = e.value >= 1e9 ? ["s", 1e9] as const : e.value >= 1e6 ? ["ms", 1e6] as const : ["µs", 1e3] as const;
  if (range) return `${significant(e.value / f)} ${unit} (${significant((e.low ?? e.value) / f)} to ${significant((e.high ?? e.value) / f)})`;
  return `${estimate(e, 1 / f)} ${unit}`;
}

function choose(id: string, label: string, values: [string, string][], value: string, pick: (v: string) => void): HTMLElement {
  const select = h("select", { id, "data-value": value, change: (e) => pick((e.currentTarget as HTMLSelectElement).value) },
    ...values.map(([v, text]) => keyed(v, h("option", { value: v, selected: v === value }, text))));
  select.value = value;
  // What a reader picked is a state of its own: going back has to undo it.
  (select as Living).renew = (newer) => {
    listenLike(select, newer);
    morphChildren(select, [...newer.childNodes]);
    select.value = (newer as HTMLSelectElement).dataset["value"] ?? "";
  };
  return h("div", {}, h("label", { for: id }, label), select);
}

const figures = Object.entries(FIGURES) as [Figure, string][];
const figureChoice = (s: HistoryState, go: Go): HTMLElement => choose("figure", "Figure", figures, s.figure, (v) => go({ figure: v as Figure }));

function sideButton(s: HistoryState, side: "a" | "b", id: string, go: Go): HTMLElement {
  const name = side.toUpperCase();
  return h("button", { type: "button", class: "small", "aria-pressed": String(s[side].includes(id)), "aria-label": `${name}: compare ${id}`, click: () => go(toggled(s, side, id)) }, name);
}

const labels = (all: Record<string, string>): HTMLElement | null => {
  const list = Object.entries(all);
  return list.length === 0 ? null : h("div", { class: "labels" }, ...list.map(([k, v]) => h("span", { class: "label" }, `${k}=${v}`)));
};

export function runsView(a: ListAnswer, s: HistoryState, go: Go): (HTMLElement | null)[] {
  if (a.all === 0 && a.tests.length === 0) {
    return [h("p", {}, "There are no runs here yet. Measure something: ", h("code", {}, "plimsoll object put --endpoint embedded --size 4KiB --duration 10s"))];
  }
  const row = (r: ListAnswer["runs"][number]) => keyed(r.id, h("tr", { class: r.standing === "invalid" ? "invalid" : null },
    h("th", { scope: "row" }, runLink(r.id)), h("td", {}, minute(r.started_at)), h("td", { class: "what" }, r.what || "-", labels(r.labels)),
    h("td", {}, r.course ? sparkline(r.course) : null), h("td", {}, r.result || "-"), h("td", { class: "standing" }, r.mark, r.imported ? h("span", { class: "said" }, `imported from ${r.imported}`) : null),
    h("td", { class: "sides" }, sideButton(s, "a", r.id, go), " ", sideButton(s, "b", r.id, go))));
  const test = (t: ListAnswer["tests"][number]) => keyed(t.id, h("tr", {},
    h("th", { scope: "row" }, h("a", { href: `/net/${encodeURIComponent(t.id)}` }, t.id)), h("td", {}, minute(t.started_at)), h("td", { class: "what" }, `network test, ${counted(t.hosts, "host")}`),
    h("td", {}), h("td", {}, t.result), h("td", {}, t.status), h("td", {}, "")));
  const heads = ["Run", "Started (UTC)", "What", "Rate over time", "Result", "Validity", "Compare"];
  const shown = a.runs.length;
  const page = (skip: number, text: string) => h("button", { type: "button", click: () => go({ skip }) }, text);
  const table = (caption: string, rows: HTMLElement[]) => keyed(caption, h("div", { class: "scroll", role: "group", "aria-label": caption, tabindex: 0 }, h("table", { class: "runs" },
    h("caption", { class: "offscreen" }, caption), h("thead", {}, h("tr", {}, ...heads.map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows))));
  const ids = a.runs.map((r) => r.id);
  const allOf = (side: "a" | "b") => keyed(side, h("button", { type: "button", class: "small", click: () => go(allTo(s, side, ids)) },
    `${shown > MOST_OF_A_SIDE ? `First ${MOST_OF_A_SIDE} shown` : "All shown"} to ${side.toUpperCase()}`));
  return [
    a.note ? h("p", { class: "note" }, `Every run was read anew: ${a.note}.`) : null,
    shown > 1 ? keyed("all to a side", h("p", { class: "tools all" }, allOf("a"), allOf("b"))) : null,
    shown > 0 ? table("Runs", a.runs.map(row)) : h("p", {}, "No run is so. Clear the filter to see all."),
    h("div", { class: "pages" }, a.skip > 0 ? keyed("newer", page(Math.max(0, a.skip - 100), "Newer")) : null, a.skip + shown < a.found ? keyed("older", page(a.skip + shown, "Older")) : null),
    a.tests.length > 0 ? h("h2", {}, "Network tests") : null,
    a.tests.length > 0 ? table("Network tests", a.tests.map(test)) : null,
  ];
}

const keysOf = (all: Record<string, string[]>): [string, string][] =>
  [["size", "Size"], ["op", "Operation"], ["concurrency", "In flight"], ...Object.keys(all).map((n): [string, string] => [`label:${n}`, `label ${n}`])];

function cell(c: PivotCell | null, figure: Figure): HTMLElement {
  if (!c) return h("td", {}, "");
  const value = c.figure ? figureText(figure, c.figure, c.said.startsWith("median")) : "no figure";
  const out = c.left_out > 0 ? `; ${c.left_out} void left out` : "";
  const [newest, ...others] = c.runs;
  return h("td", {}, newest ? runLink(newest, value) : value, h("span", { class: "said" }, c.said + out),
    others.length > 0 ? h("span", { class: "links" }, "also ", ...others.map((id) => runLink(id))) : null);
}

export function pivotView(a: PivotAnswer, s: HistoryState, go: Go, all: Record<string, string[]>): (HTMLElement | null)[] {
  const title = `${FIGURES[a.figure]}: ${a.row_head} by ${a.column_head}`;
  const more = a.more[0] + a.more[1] > 0 ? `${counted(a.more[0], "more row")} and ${counted(a.more[1], "more column")} are not shown: filter.` : "";
  const rows = a.rows.map((name, i) => keyed(name, h("tr", {}, h("th", { scope: "row" }, name), ...a.cells[i]!.map((c) => cell(c, a.figure)))));
  return [
    h("div", { class: "filters" }, choose("pivot-rows", "Rows", keysOf(all), s.rows, (v) => go({ rows: v })), choose("pivot-columns", "Columns", keysOf(all), s.columns, (v) => go({ columns: v })), figureChoice(s, go)),
    more ? h("p", { class: "note" }, more) : null,
    rows.length === 0 ? h("p", {}, "No line of the runs that are shown has this.") : keyed("pivot", h("div", { class: "scroll", role: "group", "aria-label": title, tabindex: 0 }, h("table", { class: "cells" }, h("caption", {}, title),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, a.row_head), ...a.columns.map((c) => h("th", { scope: "col" }, c)))), h("tbody", {}, ...rows)))),
  ];
}

const OUTCOMES: Record<string, string> = { greater: "A is greater", less: "A is less", "none seen": "no difference proved", undetermined: "undetermined" };

/** Whether plans and machines are alike but for what is compared. */
function alike(a: CompareAnswer): HTMLElement | null {
  if (a.not_known) return h("p", { class: "warning" }, `Whether the plans and machines are alike is not known: ${a.not_known}.`);
  if (a.findings.length === 0) return null;
  return keyed("alike", h("ul", { class: "findings", "aria-label": "Plans and machines" }, ...a.findings.map((f) => {
    const [sign, word] = SIGNS[f.level];
    return keyed(`${f.code} ${f.text}`, h("li", { class: f.level }, h("p", {}, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("strong", {}, `${word} ${f.code}`), ` ${f.text}`)));
  })));
}

export function compareView(a: CompareAnswer, s: HistoryState, go: Go, voids: ReadonlySet<string>): (HTMLElement | null)[] {
  if (a.runs.length === 0) {
    return [h("p", {}, "Choose runs first: in the list, A and B put a run on one of two sides. With three or more runs a side, the difference has an interval.")];
  }
  const heads = a.runs.map((r) => keyed(r.id, h("th", { scope: "col", class: "run" }, `${r.side.toUpperCase()} `, runLink(r.id), h("span", { class: "said" }, `${minute(r.started_at)}, ${r.what}, ${r.mark}`), labels(r.labels),
    h("span", { class: "sides" }, sideButton(s, "a", r.id, go), " ", sideButton(s, "b", r.id, go)))));
  const row = (r: CompareAnswer["rows"][number]) => keyed(`${r.line}|${r.figure}`, h("tr", {},
    h("th", { scope: "row" }, r.line, h("span", { class: "said" }, FIGURES[r.figure])),
    h("td", { class: "said-of" }, h("strong", {}, OUTCOMES[r.outcome] ?? r.outcome), h("span", { class: "said" }, r.said + (r.holds_among_all === false ? " Among so many comparisons it may be by chance (Holm, 5 %)." : ""))),
    ...r.each.map((e, i) => (e ? h("td", { class: e.valid ? null : "void" }, runLink(a.runs[i]!.id, figureText(r.figure, e.figure)), e.valid ? null : h("span", { class: "said" }, "void: in no mean")) : h("td", {}, "-")))));
  return [
    h("p", { class: "note" }, a.paired && s.a.length > 1 ? "The runs were made in turn, and are compared in pairs. " : "", "A figure of one run has the interval within that run; a ratio, that over runs (95 %, A over B)."),
    keyed("compare", h("div", { class: "scroll", role: "group", "aria-label": "Comparison", tabindex: 0 }, h("table", { class: "cells compared" }, h("caption", {}, `${sideText(s, "a", voids)} against ${sideText(s, "b", voids)}`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Line"), h("th", { scope: "col" }, "A against B"), ...heads)), h("tbody", {}, ...a.rows.map(row))))),
    alike(a),
    s.a.length > 0 && s.b.length > 0 ? h("p", {}, "The same on a command line: ", h("code", {}, a.command)) : null,
  ];
}

export function trendView(a: TrendAnswer, s: HistoryState, go: Go, width: number): (HTMLElement | null)[] {
  const lines = a.lines.map((l): [string, string] => [l.key, `${l.name} (${count(l.runs)})`]);
  const step = new Map(a.steps.map((x) => [x.at, x]));
  const ratio = (e: Estimate | null) => (e ? `× ${estimate(e)}` : "");
  const rows = a.points.map((p, i) => keyed(`${p.run}|${i}`, h("tr", {}, h("th", { scope: "row" }, minute(p.started_at)), h("td", {}, runLink(p.run, figureText(a.figure, p.figure))), h("td", {}, runLink(p.run)),
    h("td", {}, step.has(i) ? `level changed ${ratio(step.get(i)!.ratio)} (p ${significant(step.get(i)!.p, 1)})` : ""))));
  const out = [a.left_out > 0 ? `${a.left_out === 1 ? "1 void line, or line without the figure, is" : `${count(a.left_out)} void lines, or lines without the figure, are`} left out.` : "", a.older > 0 ? `${a.older === 1 ? "1 older one is" : `${count(a.older)} older ones are`} not looked at.` : ""].join(" ").trim();
  const what = lines.find(([k]) => k === a.line)?.[1] ?? "";
  return [
    h("div", { class: "filters" }, lines.length > 0 ? choose("trend-line", "Line", lines, a.line ?? "", (v) => go({ line: v })) : null, figureChoice(s, go)),
    h("p", { class: "verdict" }, a.said),
    out ? h("p", { class: "note" }, out) : null,
    ...a.steps.map((x) => keyed(`step-${x.at}`, h("p", {}, "From ", runLink(x.run), ` on: ${ratio(x.ratio)} (p ${significant(x.p, 1)}).`))),
    a.points.length > 1 ? keyed("drawing", trendDrawing(a, width, `${FIGURES[a.figure]} of ${what}. ${a.said}`)) : null,
    rows.length > 0 ? keyed("trend", h("div", { class: "scroll", role: "group", "aria-label": "Figures over time", tabindex: 0 }, h("table", {}, h("caption", {}, `${FIGURES[a.figure]}, run by run`),
      h("thead", {}, h("tr", {}, ...["Started (UTC)", "Figure", "Run", "Change"].map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows)))) : null,
  ];
}
