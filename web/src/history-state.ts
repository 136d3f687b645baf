// What the history shows is what its address says: reload, back and a link that somebody was sent show the same.

export const VIEWS = ["runs", "pivot", "compare", "trend"] as const;
export type View = (typeof VIEWS)[number];

export const FIGURES = { ops_per_s: "Rate, op/s", bytes_per_s: "Throughput, MiB/s", p50_ns: "Response, median", p99_ns: "Response, p99" } as const;
export type Figure = keyof typeof FIGURES;

export interface HistoryState {
  view: View;
  /** NAME=VALUE, all must hold. */
  labels: string[];
  op: string;
  target: string;
  validity: string;
  /** Days, of UTC. */
  since: string;
  until: string;
  skip: number;
  figure: Figure;
  rows: string;
  columns: string;
  a: string[];
  b: string[];
  line: string;
}

const isView = (v: string | null): v is View => (VIEWS as readonly string[]).includes(v ?? "");
const isFigure = (v: string | null): v is Figure => v !== null && v in FIGURES;

export function fromQuery(query: string): HistoryState {
  const q = new URLSearchParams(query);
  const [view, figure] = [q.get("view"), q.get("figure")];
  return {
    view: isView(view) ? view : "runs",
    labels: q.getAll("label").filter((l) => l !== ""), op: q.get("op") ?? "", target: q.get("target") ?? "", validity: q.get("validity") ?? "",
    since: q.get("since") ?? "", until: q.get("until") ?? "", skip: Math.max(0, Number.parseInt(q.get("skip") ?? "0", 10) || 0),
    figure: isFigure(figure) ? figure : "ops_per_s", rows: q.get("rows") ?? "size", columns: q.get("columns") ?? "op",
    a: q.getAll("a"), b: q.getAll("b"), line: q.get("line") ?? "",
  };
}

/** Of what differs from what is shown without it. */
export function toQuery(s: HistoryState): string {
  const q = new URLSearchParams();
  const put = (name: string, value: string, usual = "") => { if (value !== usual) q.append(name, value); };
  put("view", s.view, "runs");
  s.labels.forEach((l) => q.append("label", l));
  for (const name of ["op", "target", "validity", "since", "until", "line"] as const) put(name, s[name]);
  put("skip", String(s.skip), "0");
  put("figure", s.figure, "ops_per_s");
  put("rows", s.rows, "size");
  put("columns", s.columns, "op");
  s.a.forEach((id) => q.append("a", id));
  s.b.forEach((id) => q.append("b", id));
  const text = q.toString();
  return text === "" ? "" : `?${text}`;
}

/** What the server is asked: nothing that the view does not need, so that what was chosen for another does no harm. */
export function toRequest(s: HistoryState): string {
  const q = new URLSearchParams();
  const put = (name: string, value: string) => { if (value !== "") q.append(name, value); };
  if (s.view === "compare") {
    s.a.forEach((id) => q.append("a", id));
    s.b.forEach((id) => q.append("b", id));
    return `/api/compare?${q}`;
  }
  s.labels.forEach((l) => q.append("label", l));
  for (const name of ["op", "target", "validity", "since", "until"] as const) put(name, s[name]);
  if (s.view === "runs") put("skip", s.skip === 0 ? "" : String(s.skip));
  else put("figure", s.figure);
  if (s.view === "pivot") (["rows", "columns"] as const).forEach((name) => put(name, s[name]));
  if (s.view === "trend") put("line", s.line);
  return `/api/${s.view}?${q}`;
}

export const isFiltered = (s: HistoryState): boolean => s.labels.length > 0 || [s.op, s.target, s.validity, s.since, s.until].some((v) => v !== "");
export const unfiltered = { labels: [] as string[], op: "", target: "", validity: "", since: "", until: "", skip: 0 };

/** What the server takes of a side (crates/serve/src/history/query.rs). */
export const MOST_OF_A_SIDE = 40;

/** These go to a side beside what it has, from the other if they were there; what it has no room for stays where it was. */
export function allTo(s: HistoryState, side: "a" | "b", ids: string[]): Pick<HistoryState, "a" | "b"> {
  const more = ids.filter((id) => !s[side].includes(id)).slice(0, Math.max(0, MOST_OF_A_SIDE - s[side].length));
  const other = side === "a" ? "b" : "a";
  return { a: s.a, b: s.b, [side]: [...s[side], ...more], [other]: s[other].filter((id) => !more.includes(id)) };
}

/** `4 in A`, `4 in A (1 void)`: what is void is in no mean, and is told apart from what is compared. */
export function sideText(s: HistoryState, side: "a" | "b", voids: ReadonlySet<string>): string {
  const out = s[side].filter((id) => voids.has(id)).length;
  return `${s[side].length} in ${side.toUpperCase()}${out > 0 ? ` (${out} void)` : ""}`;
}

/** A run goes to a side, from the other if it was there, or from this one away. */
export function toggled(s: HistoryState, side: "a" | "b", id: string): Pick<HistoryState, "a" | "b"> {
  const without = { a: s.a.filter((x) => x !== id), b: s.b.filter((x) => x !== id) };
  return s[side].includes(id) ? without : { ...without, [side]: [...without[side], id] };
}
