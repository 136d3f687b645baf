// The history of `plimsoll serve`: runs listed and filtered, as a pivot, compared, over time. What is shown is what the address says; the
// server filters, and what it answers is shown with keyed updates, so that focus and scrolling stay with the reader.
import { h } from "./dom";
import { count, counted } from "./format";
import type { Answer, CompareAnswer, ListAnswer, PivotAnswer, TrendAnswer } from "./history-data";
import { fromQuery, isFiltered, sideText, toQuery, toRequest, unfiltered, VIEWS, type HistoryState, type View } from "./history-state";
import { compareView, pivotView, runsView, trendView } from "./history-views";
import { keyed, morphChildren, own } from "./keyed";
import { plimsollMark, themeSwitch } from "./masthead";

/** Runs begin and end while the list is open. */
const LOOK_AGAIN = 5000;
const NAMES: Record<View, string> = { runs: "List", pivot: "Pivot", compare: "Compare", trend: "Trend" };
const STANDINGS = ["valid", "partly", "invalid", "running", "killed", "unjudged"];

interface Given { place: string; list: ListAnswer | null }
const given = JSON.parse(document.getElementById("plimsoll-data")?.textContent ?? '{"place":"","list":null}') as Given;

let state = fromQuery(location.search);
/** What there is to filter by, of the last list. */
let known: Pick<ListAnswer, "labels" | "ops" | "all"> = given.list ?? { labels: {}, ops: [], all: 0 };
let shown: { view: View; answer: Answer } | null = given.list && state.view === "runs" ? { view: "runs", answer: given.list } : null;
/** Runs that are known to be void, of all answers so far: those that are chosen need not be among those that are listed. */
const voids = new Set<string>();
let asked: AbortController | null = null;
let again: ReturnType<typeof setTimeout> | undefined;

const status = h("p", { role: "status", class: "note", id: "found" });
const trouble = h("p", { class: "warning", role: "alert", hidden: true });
const views = h("ul", { class: "views" });
const chips = h("ul", { class: "chips" });
const chosen = h("div", { class: "pages" });
const body = h("section", { id: "view", "aria-label": "What was found" });

function go(change: Partial<HistoryState>): void {
  const before = toQuery(state);
  // Another filter begins at its newest run.
  const moves = "skip" in change || "a" in change || "b" in change;
  state = { ...state, ...(moves ? {} : { skip: 0 }), ...change };
  if (toQuery(state) !== before) history.pushState(null, "", `/${toQuery(state)}`);
  // Which runs are chosen is nothing that a list has to be asked for.
  if (state.view !== "compare" && Object.keys(change).every((k) => k === "a" || k === "b")) return show();
  sync();
  void load();
}

type Field = HTMLSelectElement | HTMLInputElement;
const field = (id: string, label: string, input: Field): HTMLElement => h("div", {}, h("label", { for: id }, label), input);
const picks = (id: string, pick: (v: string) => void): HTMLSelectElement => own(h("select", { id, change: (e) => pick((e.currentTarget as HTMLSelectElement).value) }));

const label = picks("f-label", (v) => { if (v !== "") go({ labels: [...state.labels.filter((l) => l.split("=")[0] !== v.split("=")[0]), v] }); });
const op = picks("f-op", (v) => go({ op: v }));
const validity = picks("f-validity", (v) => go({ validity: v }));
const typed = (id: "target" | "since" | "until", type: string): HTMLInputElement => h("input", { id: `f-${id}`, type, autocomplete: "off", change: (e) => go({ [id]: (e.currentTarget as HTMLInputElement).value.trim() }) });
const [target, since, until] = [typed("target", "search"), typed("since", "date"), typed("until", "date")];
const filters = h("form", { class: "filters", role: "search", "aria-label": "Filter runs", submit: (e) => { e.preventDefault(); target.blur(); target.focus(); } },
  field("f-label", "Label", label), field("f-op", "Operation", op), field("f-target", "Target has", target), field("f-validity", "Validity", validity), field("f-since", "Since (UTC)", since), field("f-until", "Before (UTC)", until));

function options(select: HTMLSelectElement, values: [string, string][], value: string): void {
  // What the address asks for is there to be seen, even where no run has it.
  const all = values.some(([v]) => v === value) ? values : [...values, [value, value] as [string, string]];
  morphChildren(select, all.map(([v, text]) => keyed(v, h("option", { value: v }, text))));
  select.value = value;
}

/** The filter says what the address says. */
function sync(): void {
  const same = (text: string): [string, string] => [text, text];
  options(label, [["", "any"], ...Object.entries(known.labels).flatMap(([n, values]) => values.map((v) => same(`${n}=${v}`)))], "");
  options(op, [["", "any"], ...known.ops.map(same)], state.op);
  options(validity, [["", "any"], ...STANDINGS.map(same)], state.validity);
  for (const [input, value] of [[target, state.target], [since, state.since], [until, state.until]] as const) if (input.value !== value && document.activeElement !== input) input.value = value;
  const chip = (l: string) => keyed(l, h("li", {}, h("button", { type: "button", class: "small", "aria-label": `Remove the filter ${l}`, click: () => go({ labels: state.labels.filter((x) => x !== l) }) }, `${l} ×`)));
  const clear = keyed("clear all", h("li", {}, h("button", { type: "button", class: "small", click: () => go(unfiltered) }, "Clear the filter")));
  morphChildren(chips, [...state.labels.map(chip), ...(isFiltered(state) ? [clear] : [])]);
  const link = (v: View) => keyed(v, h("li", {}, h("a", { href: `/${toQuery({ ...state, view: v, skip: 0 })}`, "aria-current": v === state.view ? "page" : null, click: (e) => { const m = e as MouseEvent; if (m.ctrlKey || m.metaKey || m.shiftKey) return; e.preventDefault(); go({ view: v }); } }, NAMES[v])));
  morphChildren(views, VIEWS.map(link));
  const sides = state.a.length + state.b.length;
  morphChildren(chosen, sides === 0 ? [] : [h("span", {}, `Chosen: ${sideText(state, "a", voids)}, ${sideText(state, "b", voids)}`), keyed("compare", h("button", { type: "button", class: "small", click: () => go({ view: "compare" }) }, "Compare them")), keyed("none", h("button", { type: "button", class: "small", click: () => go({ a: [], b: [] }) }, "Choose none"))]);
  filters.hidden = chips.hidden = state.view === "compare";
}

function say(text: string): void {
  trouble.textContent = text;
  trouble.hidden = text === "";
}

function learn(answer: Answer): void {
  const all = answer.schema === "plimsoll.history/1" ? answer.runs.map((r) => [r.id, r.standing === "invalid"] as const)
    : answer.schema === "plimsoll.compare/1" ? answer.runs.map((r) => [r.id, r.mark.startsWith("INVALID")] as const) : [];
  for (const [id, isVoid] of all) if (isVoid) voids.add(id); else voids.delete(id);
}

/** Of the view that is asked for; what was there stays until its answer is here. */
function show(): void {
  if (shown) learn(shown.answer);
  sync();
  if (shown?.view !== state.view) return;
  const width = Math.max(300, body.clientWidth || 800);
  const of = { runs: () => runsView(shown!.answer as ListAnswer, state, go), pivot: () => pivotView(shown!.answer as PivotAnswer, state, go, known.labels), compare: () => compareView(shown!.answer as CompareAnswer, state, go, voids), trend: () => trendView(shown!.answer as TrendAnswer, state, go, width) };
  morphChildren(body, of[state.view]().filter((e) => e !== null));
  const list = state.view === "runs" ? (shown.answer as ListAnswer) : null;
  const range = list && list.found > list.runs.length ? `, ${count(list.skip + 1)} to ${count(list.skip + list.runs.length)} shown` : "";
  status.textContent = list ? `${count(list.found)} of ${counted(list.all, "run")}${range}` : "";
  document.title = `${state.view === "runs" ? "Runs" : NAMES[state.view]} - Plimsoll`;
}

async function fetched(address: string, signal: AbortSignal): Promise<Answer | null> {
  for (;;) {
    const answer = await fetch(address, { signal, headers: { accept: "application/json" } });
    const found = (await answer.json()) as Answer | { error: string };
    if (answer.ok) return found as Answer;
    if (answer.status !== 503) throw new Error((found as { error: string }).error);
    status.textContent = (found as { error: string }).error;
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function load(): Promise<void> {
  asked?.abort();
  clearTimeout(again);
  const mine = (asked = new AbortController());
  const { view } = state;
  try {
    const answer = await fetched(toRequest(state), mine.signal);
    if (mine.signal.aborted || !answer) return;
    if (answer.schema === "plimsoll.history/1") known = answer;
    else if (known.all === 0) known = (await fetched("/api/runs", mine.signal)) as ListAnswer;
    if (mine.signal.aborted) return;
    shown = { view, answer };
    say("");
    show();
    document.dispatchEvent(new CustomEvent("plimsoll:found", { detail: toQuery(state) }));
  } catch (e) {
    if (mine.signal.aborted) return;
    say(e instanceof TypeError ? "The server does not answer: what is shown is of before. Trying again." : String(e instanceof Error ? e.message : e));
  }
  // A page in the background asks nobody.
  again = setTimeout(() => { if (!document.hidden && (state.view === "runs" || !trouble.hidden)) void load(); }, LOOK_AGAIN);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) void load(); });
addEventListener("popstate", () => {
  state = fromQuery(location.search);
  show();
  void load();
});
let wide = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === wide) return;
  wide = innerWidth;
  show();
});

const main = h("main", { id: "main", tabindex: -1 }, filters, chips, chosen, trouble, status, body);
document.getElementById("app")!.replaceChildren(
  h("header", { class: "top" }, h("div", { class: "brand" }, plimsollMark() as unknown as Node, h("span", {}, "Plimsoll")), h("h1", {}, "Runs"), h("span", { class: "id" }, given.place), themeSwitch()),
  h("nav", { "aria-label": "Views" }, views), main);
show();
if (shown) again = setTimeout(() => void load(), LOOK_AGAIN);
else void load();
