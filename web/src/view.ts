// Puts the page together, and keeps it up to date: each run's sections by the run's id and the section's.
import { isLive } from "./connection";
import { h } from "./dom";
import type { Page, Run } from "./feed";
import { Keyed, unfold, type Item } from "./keyed";
import { plimsollMark, themeSwitch } from "./masthead";
import { nowSection } from "./now";
import { badge, groupSections, runSections, togetherVerdict, verdict, verdictInputs, type Section } from "./sections";
import type { State } from "./state";

/** Where nothing is left to show, no section. */
function sectionElement(s: Section, prefix: string): HTMLElement | null {
  if (s.says) {
    const result = s.says();
    const title = () => h("span", { class: "head" }, h("h2", {}, s.title), h("span", { class: "offscreen" }, ": "), h("span", { class: "says" }, result));
    return result === null ? null : unfold(title(), s.body, { class: "fold", id: prefix + s.id });
  }
  const body = s.body();
  if (body.every((b) => b === null)) return null;
  // Of a run among several it is no landmark: each of them has the same.
  return h("section", { id: prefix + s.id, "aria-labelledby": prefix ? null : `${prefix}${s.id}-title` }, h("h2", { id: `${prefix}${s.id}-title`, class: s.quiet ? "offscreen" : null }, s.title), ...body);
}

const sectionItem = (at: Keyed, key: string, s: Section, prefix: string): Item => at.item(`${key}/${s.id}`, [prefix, ...s.inputs], () => sectionElement(s, prefix));

/** For paper, or to search the whole page: paper has what is open. */
function openAll(): HTMLElement {
  const set = (open: boolean) => { for (const d of document.querySelectorAll<HTMLDetailsElement>("main details.fold")) d.open = open; };
  const button = (label: string, open: boolean) => h("button", { type: "button", class: "small", click: () => set(open) }, label);
  return h("div", { class: "tools folds" }, button("Open all", true), button("Close all", false));
}

function runItems(at: Keyed, run: Run, prefix: string, alone: boolean): Item[] {
  const id = run.summary.id;
  const sections = runSections(run);
  const of = (folded: boolean) => sections.filter((s) => (s.says !== undefined) === folded).map((s) => sectionItem(at, id, s, prefix));
  return [
    // What it does just now is what somebody looks at while it goes on.
    ...(run.live && run.now ? [sectionItem(at, id, nowSection(run), prefix)] : []),
    at.item(`${id}/verdict`, verdictInputs(run), () => verdict(run)), ...of(false),
    ...(alone ? [at.item(`${id}/open`, [], openAll)] : []), ...of(true),
  ];
}

/** A run among several. Its charts are made when it is opened: thirty runs at once would be slow, and nobody reads them so. */
class FoldedRun {
  readonly element = h("details", { class: "run", toggle: () => this.#show() });
  readonly #parts = new Keyed(this.element);
  /** What is inside; while it is folded away, it stays as it was. */
  #inside: Run | null = null;

  constructor(public run: Run, public prefix: string) {
    this.#show();
  }

  update(run: Run, prefix: string): void {
    if (run === this.run && prefix === this.prefix) return;
    this.run = run;
    this.prefix = prefix;
    this.#show();
  }

  #show(): void {
    const { run } = this;
    if (this.element.open) this.#inside = run;
    this.element.classList.toggle("going", !!run.live);
    this.#parts.show([
      this.#parts.item("summary", [run.summary.id, run.glance, run.status, run.live, run.summary.answered, run.analysis.comparisons], () => h("summary", {}, h("span", { class: "name" }, run.glance.title), badge(run), h("span", { class: "id" }, run.summary.id))),
      ...(this.#inside ? runItems(this.#parts, this.#inside, this.prefix, false) : []),
    ]);
  }
}

interface Runs { at: Keyed; each: Map<string, FoldedRun> }

/** Every run that is shown has come to its end, so that nothing more can come. */
const isDone = (state: State): boolean => state.over !== null && !!state.page && state.page.runs.every((r) => !r.live);

/** That is as it should be, and no alert; a page whose server is gone is of no use tomorrow. */
function done(over: string, runs: Run[]): HTMLElement {
  const id = runs.length === 1 ? runs[0]!.summary.id : "RUN";
  const code = (text: string) => h("code", {}, text);
  return h("p", { class: "note done", role: "status" }, `Nothing more will come: ${over}. To see it again: `, code("plimsoll serve"), " for the history, ", code(`plimsoll report ${id} -o ${id}.html`), " for a file.");
}

/** What of a feed's own state a reader has to know. */
export function notices(state: State): string[] {
  return [
    ...(state.resync ? ["Part of what was sent did not arrive and was asked for again: what is shown may be behind."] : []),
    ...state.troubles,
    ...(state.errors > state.troubles.length ? [`${state.errors} messages could not be used.`] : []),
    ...(state.ignored > 0 ? [`${state.ignored} messages were of a kind that this page does not know: they come from a newer Plimsoll.`] : []),
    ...(state.over === null || isDone(state) ? [] : [`Nothing more will come: ${state.over}.`]),
  ];
}

export class View {
  readonly #title = h("h1", {});
  readonly #id = h("span", { class: "id" });
  readonly #main = h("main", { id: "main", tabindex: -1 });
  readonly #footer = h("footer", {}, h("p", {}));
  readonly #parts = new Keyed(this.#main);
  #runs: Runs | null = null;

  show(state: State, page: Page): void {
    // The page that stands in for this one goes when this one is there.
    const app = this.#main.isConnected ? null : document.getElementById("app");
    const focused = document.activeElement;
    const single = page.runs.length === 1 && page.groups.length === 0;
    this.#heads(page);
    const said = notices(state);
    const notice = this.#parts.item("notices", said, () => (said.length ? h("div", { role: "alert" }, ...said.map((t) => h("p", { class: "warning" }, t))) : null));
    const over = isDone(state) ? state.over! : null;
    const end = this.#parts.item("done", [over, ...page.runs.map((r) => r.summary.id)], () => (over === null ? null : done(over, page.runs)));
    this.#main.classList.toggle("going", single && !!page.runs[0]!.live);
    this.#parts.show([notice, end, ...(single ? runItems(this.#parts, page.runs[0]!, "", true) : this.#several(page))]);
    app?.replaceChildren(
      h("header", { class: "top" }, h("div", { class: "brand" }, plimsollMark() as unknown as Node, h("span", {}, "Plimsoll")), this.#title, this.#id, themeSwitch()),
      this.#main, this.#footer);
    // What had to be moved has lost its focus.
    if (focused instanceof HTMLElement && focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  }

  #heads(page: Page): void {
    const one = page.runs.length === 1 ? page.runs[0]! : null;
    const title = page.title ?? (one ? one.glance.title : page.together?.title ?? `${page.runs.length} runs`);
    const put = (e: Element, text: string) => { if (e.textContent !== text) e.textContent = text; };
    put(this.#title, title);
    put(this.#id, one && one.summary.id !== title ? one.summary.id : "");
    const whence = isLive() ? "It is fed by the server that it came from; `plimsoll report` makes a file of the run." : "This file holds everything it shows and asks the network for nothing.";
    put(this.#footer.firstElementChild!, `Made by Plimsoll ${page.made_by}. ${whence}`);
    if (document.title !== `${title} - Plimsoll`) document.title = `${title} - Plimsoll`;
  }

  #several(page: Page): Item[] {
    const section = this.#parts.item("page/runs", [], () => {
      const element = h("section", { id: "runs", "aria-labelledby": "runs-title" });
      this.#runs = { at: new Keyed(element), each: new Map() };
      return element;
    });
    this.#folded(page, this.#runs!);
    const t = page.together;
    return [
      ...(t ? [this.#parts.item("page/verdict", [t], () => togetherVerdict(t))] : []),
      ...groupSections(page).map((s) => sectionItem(this.#parts, "page", s, "")), section];
  }

  #folded(page: Page, { at, each }: Runs): void {
    const items = page.runs.map((run, i) => {
      // The same run may be given twice.
      const key = `${run.summary.id}/${page.runs.slice(0, i).filter((r) => r.summary.id === run.summary.id).length}`;
      const prefix = `run${i + 1}-`;
      const folded = each.get(key) ?? new FoldedRun(run, prefix);
      each.set(key, folded);
      folded.update(run, prefix);
      return at.item(key, [folded], () => folded.element);
    });
    at.show([at.item("title", [], () => h("h2", { id: "runs-title" }, "Runs")), ...items]);
    const keys = new Set(items.map((x) => x.key));
    for (const key of each.keys()) if (!keys.has(key)) each.delete(key);
  }
}
