// The state of the page, made of messages by one pure function. What a message leaves as it was keeps its identity, so
// that whoever shows a part of it knows by `===` whether that part has changed.
import { checkPage, FeedError, type Append, type Hello, type Message, type Page, type Replaced, type Resource, type ResourcePart, type Run, type Series, type SeriesPart, type Unread } from "./feed";

export interface State {
  /** Null until the first hello. */
  page: Page | null;
  /** Which numbering `seq`, the number of the last message that counts, is of. */
  feed: string;
  seq: number;
  /** Messages are missing: nothing is appended until a hello has come, which is asked for. */
  resync: boolean;
  /** Nothing more will come, for this reason. */
  over: string | null;
  /** Messages of kinds that this page does not know. */
  ignored: number;
  /** What was wrong with messages since the last hello: the last few different ones; and how many there were in all. */
  troubles: string[];
  errors: number;
}

export const START: State = { page: null, feed: "", seq: 0, resync: false, over: null, ignored: 0, troubles: [], errors: 0 };

/** A page is read by a person in a browser: beyond these a feed has to thin out what it sends. */
export const MOST = { points: 20_000, said: 2_000, troubles: 5 } as const;

/** What is wrong with one message, and harms no other. */
class Refused extends Error {}
/** What is wrong with a message because others are missing, or makes later ones wrong. */
class Lost extends Error {}

/** `next` with every part that equals `old`'s in `old`'s place. Runs are the same run by their id. */
export function share<T>(old: unknown, next: T): T {
  if (Object.is(old, next)) return next;
  if (typeof old !== "object" || typeof next !== "object" || old === null || next === null || Array.isArray(old) !== Array.isArray(next)) return next;
  if (Array.isArray(old) && Array.isArray(next)) {
    const out = next.map((x, i) => share(old[i], x));
    return (out.length === old.length && out.every((x, i) => Object.is(x, old[i])) ? old : out) as T;
  }
  const [a, b] = [old as Record<string, unknown>, next as Record<string, unknown>];
  const names = Object.keys(b);
  const out = Object.fromEntries(names.map((n) => [n, share(a[n], b[n])]));
  return (names.length === Object.keys(a).length && names.every((n) => n in a && Object.is(out[n], a[n])) ? old : out) as T;
}

const idOf = (run: Run): string => run.summary.id;

function sharedPage(old: Page | null, next: Page): Page {
  if (!old) return next;
  const runs = next.runs.map((r) => share(old.runs.find((o) => idOf(o) === idOf(r)), r));
  const page = share(old, { ...next, runs: old.runs });
  return runs.length === old.runs.length && runs.every((r, i) => r === old.runs[i]) ? page : { ...page, runs };
}

export const seriesKey = (s: Series): string => JSON.stringify([s.stage, s.label, s.op]);
export const resourceKey = (r: Resource): string => JSON.stringify([r.role, r.host, r.group, r.name]);

type Column = (number | null)[];
const COLUMNS = ["ops_per_s", "bytes_per_s", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "ttfb_p50_ns"] as const;

/** The first `at` of what is there, then what came. A column that one of both lacks is filled. */
function column(old: Column, part: Column | undefined, at: number, more: number, fill: (i: number) => number | null): Column {
  const came = part ?? [];
  if (came.length !== 0 && came.length !== more) throw new Lost(`a column of ${came.length} points among columns of ${more}`);
  const kept = old.slice(0, at);
  if (kept.length === 0 && came.length === 0) return [];
  const filled = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => fill(from + i));
  return [...(kept.length ? kept : filled(0, at)), ...(came.length ? came : filled(at, at + more))];
}

function room(what: string, has: number, at: number, more: number): void {
  if (!Number.isSafeInteger(at) || at < 0 || at > has) throw new Lost(`${what} has ${has} points, and the next came as number ${at}`);
  if (at + more > MOST.points) throw new Refused(`${what} would have more than ${MOST.points} points`);
}

export function withPoints(old: Series | undefined, part: SeriesPart): Series {
  const { at, ...head } = part;
  const more = part.ops_per_s.length;
  room(`The series ${part.label}`, old?.ops_per_s.length ?? 0, at, more);
  const unknown = () => null;
  const columns = Object.fromEntries(COLUMNS.map((c) => [c, column(old?.[c] ?? [], part[c], at, more, unknown)])) as Pick<Series, (typeof COLUMNS)[number]>;
  // An outcome that was not seen was none, wherever something was seen at all.
  const none = (i: number) => (columns.ops_per_s[i] === null ? null : 0);
  const names = [...new Set([...(at > 0 ? Object.keys(old?.outcomes_per_s ?? {}) : []), ...Object.keys(part.outcomes_per_s)])].sort();
  const outcomes_per_s = Object.fromEntries(names.map((n) => [n, column(old?.outcomes_per_s[n] ?? [], part.outcomes_per_s[n], at, more, none)]));
  return share(old, { ...head, ...columns, outcomes_per_s });
}

export function withSamples(old: Resource | undefined, part: ResourcePart): Resource {
  const { at, ...head } = part;
  if (part.t.length !== part.v.length) throw new Lost(`${part.t.length} times for ${part.v.length} samples of ${part.name}`);
  room(`${part.name} of ${part.host}`, old?.t.length ?? 0, at, part.t.length);
  return share(old, { ...head, t: [...(old?.t.slice(0, at) ?? []), ...part.t], v: [...(old?.v.slice(0, at) ?? []), ...part.v] });
}

/** Each part in the place of what has its key, else at the end. */
function merged<T, P extends T>(list: T[], parts: P[] | undefined, key: (x: T) => string, merge: (old: T | undefined, part: P) => T): T[] {
  const out = [...list];
  for (const part of parts ?? []) {
    const at = out.findIndex((x) => key(x) === key(part));
    if (at < 0) out.push(merge(undefined, part));
    else out[at] = merge(out[at], part);
  }
  return share(list, out);
}

function more<T>(list: T[], came: T[] | undefined): T[] {
  if (!came?.length) return list;
  if (list.length + came.length > MOST.said) throw new Refused(`more than ${MOST.said} findings, claims or events of one run came`);
  return [...list, ...came];
}

const REPLACED = ["summary", "status", "verdict", "glance", "labels", "spoiled", "sweep", "block", "plan", "analysis", "stages", "spectra", "gaps", "seal", "servers"] as const satisfies readonly (keyof Replaced)[];

function changedRun(run: Run, m: Exclude<Append, { kind: "run" }>): Run {
  switch (m.kind) {
    case "points": return { ...run, series: merged(run.series, m.series, seriesKey, withPoints), resources: merged(run.resources, m.resources, resourceKey, withSamples) };
    case "said": {
      const s = run.summary;
      const remarks = more(run.analysis.remarks ?? [], m.events);
      return {
        ...run,
        summary: { ...s, findings: more(s.findings, m.findings), claims: more(s.claims, m.claims) },
        analysis: m.events?.length ? { ...run.analysis, remarks } : run.analysis,
      };
    }
    case "summary": {
      if (m.set.summary && m.set.summary.id !== idOf(run)) throw new Refused(`a summary of ${m.set.summary.id} came for ${idOf(run)}`);
      return { ...run, ...Object.fromEntries(REPLACED.filter((n) => m.set[n] !== undefined).map((n) => [n, m.set[n]])) };
    }
    case "now": return { ...run, now: m.now };
    case "end": return { ...run, live: false, end: m.end };
  }
}

function changedPage(page: Page, m: Append): Page {
  if (m.kind === "run") {
    const runs = page.runs.some((r) => idOf(r) === idOf(m.run)) ? page.runs.map((r) => (idOf(r) === idOf(m.run) ? m.run : r)) : [...page.runs, m.run];
    return sharedPage(page, { ...page, runs, by: m.by ?? page.by, groups: m.groups ?? page.groups, together: m.together ?? page.together });
  }
  const at = page.runs.findIndex((r) => idOf(r) === m.run);
  if (at < 0) throw new Refused(`the page holds no run ${m.run}`);
  const run = changedRun(page.runs[at]!, m);
  return share(page, { ...page, runs: page.runs.map((r, i) => (i === at ? run : r)) });
}

/** A trouble is said once however often it comes; of different ones the last few. */
export function trouble(state: State, text: string): State {
  const troubles = state.troubles.includes(text) ? state.troubles : [...state.troubles, text].slice(-MOST.troubles);
  return { ...state, troubles, errors: state.errors + 1 };
}

function greeted(state: State, m: Hello): State {
  // One that appends have overtaken: what they brought must not be lost.
  if (state.page && m.feed === state.feed && m.seq < state.seq) return state;
  return { ...state, page: sharedPage(state.page, checkPage(m.page)), feed: m.feed, seq: m.seq, resync: false, over: null, troubles: [] };
}

const KINDS = new Set<string>(["points", "said", "summary", "now", "run", "end"] satisfies Append["kind"][]);

function appended(state: State, m: Append | Unread): State {
  if (m.seq <= state.seq && state.page) return state;
  if (!state.page || state.resync || m.seq !== state.seq + 1) return state.resync ? state : { ...state, resync: true };
  const next = { ...state, seq: m.seq };
  if (!KINDS.has(m.kind)) return { ...next, ignored: state.ignored + 1 };
  const known = m as Append;
  if (known.kind === "end" && known.run === null) return { ...next, over: known.end };
  try {
    return { ...next, page: changedPage(state.page, known) };
  } catch (e) {
    const said = trouble(next, `Message ${m.seq} (${m.kind}) was left out: ${e instanceof Error ? e.message : String(e)}.`);
    // Without what was in it, later ones would be appended in the wrong place.
    return e instanceof Refused ? said : { ...said, resync: true };
  }
}

/** The state after one more message. Never throws: what is wrong with a message is in the state. */
export function apply(state: State, message: Message | Unread): State {
  if (message.kind !== "hello") return appended(state, message as Append | Unread);
  try {
    return greeted(state, message as Hello);
  } catch (e) {
    return trouble(state, e instanceof FeedError ? e.message : `This report could not be shown: ${String(e)}`);
  }
}
