// The state that messages make: what is repeated, missing, unknown or wrong; and that appending is the same as being told all.
import { describe, expect, it } from "vitest";

import { parse, SCHEMA, type Append, type Claim, type Finding, type Hello, type Message, type Page, type Remark, type Resource, type ResourcePart, type Run, type Series, type SeriesPart, type Unread } from "../src/feed";
import { apply, MOST, share, START, trouble, type State } from "../src/state";

/** A small generator of random numbers, so that what fails can be made again from its seed. */
function randomOf(seed: number) {
  let a = seed >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n: number) => Math.floor(next() * n);
  return { next, below, pick: <T>(list: readonly T[]): T => list[below(list.length)]! };
}
type Random = ReturnType<typeof randomOf>;

const SEEDS = Array.from({ length: 100 }, (_, i) => i + 1);
const range = (n: number) => Array.from({ length: n }, (_, i) => i);

const finding = (i: number): Finding => ({ code: `Q${i}`, name: "n", level: "info", text: `finding ${i}` });
const claim = (i: number): Claim => ({ claim: "rate", subject: `put/${i}`, text: `claim ${i}` });
const remark = (i: number): Remark => ({ at_s: i, text: `remark ${i}`, planned: false });

/** What a run is fed in the end; cut into appends by the tests. */
function series(r: Random, stage: number, label: string): Series {
  const n = 1 + r.below(12);
  const known = (p: number) => range(n).map(() => (r.next() < p ? r.below(1000) : null));
  const ops = known(0.8);
  const bytes = r.next() < 0.5 ? known(0.9) : [];
  const latency = () => known(0.7);
  // An outcome that occurs late: nothing of it is in the first points.
  const from = r.below(n);
  const outcome = ops.map((o, i) => (o === null ? null : i < from ? 0 : r.below(5)));
  return {
    line: 0, label, op: "put", stage, start_s: 0.5, step_s: 1, offered_per_s: null, ops_per_s: ops, bytes_per_s: bytes, bytes_of_ok: false,
    p50_ns: latency(), p90_ns: latency(), p99_ns: latency(), p999_ns: latency(), max_ns: latency(), ttfb_p50_ns: [],
    outcomes_per_s: outcome.some((x) => x !== null && x > 0) ? { http_503: outcome } : {},
  };
}

function resource(r: Random, host: string, name: string): Resource {
  const n = r.below(9);
  return { host, role: r.pick(["client", "server"] as const), group: "cpu", name, unit: "%", threshold: null, t: range(n), v: range(n).map(() => r.below(100)) };
}

function run(r: Random, id: string): Run {
  const some = <T>(make: (i: number) => T): T[] => range(r.below(5)).map(make);
  return {
    summary: { id, verdict: `of ${id}`, claims: some(claim), findings: some(finding), workloads: [], labels: { tier: r.pick(["a", "b"]) } } as unknown as Run["summary"],
    status: "VALID", verdict: "v", glance: { title: id, mark: "VALID", sentence: "", facts: [], reservations: [], more_reservations: 0 }, labels: [], spoiled: [], sweep: false, block: false, plan: "", analysis: { holds: [], remarks: some(remark) } as unknown as Run["analysis"],
    stages: [], series: range(1 + r.below(3)).flatMap((s) => ["a", "b"].map((l) => series(r, s, l))), spectra: [], resources: ["h1", "h2"].map((h) => resource(r, h, "CPU")), gaps: [], end: null, seal: null,
  };
}

const page = (runs: Run[]): Page => ({ schema: SCHEMA, title: null, columns: [], made_by: "0", runs, by: [], groups: [], together: null });
const hello = (p: Page, seq = 0, feed = "f"): Hello => ({ kind: "hello", seq, feed, page: p });
const copy = <T>(x: T): T => JSON.parse(JSON.stringify(x)) as T;
const feed = (messages: readonly (Message | Unread)[], from: State = START): State => messages.reduce(apply, from);

/** As a feed without a number; the numbers come when the order is settled. */
type Unnumbered = Append extends infer A ? (A extends Append ? Omit<A, "seq"> : never) : never;

const cut = (column: (number | null)[], from: number, to: number) => column.slice(from, to);

function seriesPart(s: Series, from: number, to: number): SeriesPart {
  // As a server would: what did not occur among these points is not named.
  const outcomes = Object.entries(s.outcomes_per_s).map(([n, c]) => [n, cut(c, from, to)] as const).filter(([, c]) => c.some((x) => x !== null && x > 0));
  return {
    ...s, at: from, ops_per_s: cut(s.ops_per_s, from, to), bytes_per_s: cut(s.bytes_per_s, from, to), p50_ns: cut(s.p50_ns, from, to), p90_ns: cut(s.p90_ns, from, to),
    p99_ns: cut(s.p99_ns, from, to), p999_ns: cut(s.p999_ns, from, to), max_ns: cut(s.max_ns, from, to), ttfb_p50_ns: [], outcomes_per_s: Object.fromEntries(outcomes),
  };
}
const resourcePart = (x: Resource, from: number, to: number): ResourcePart => ({ ...x, at: from, t: x.t.slice(from, to), v: x.v.slice(from, to) });

/** A run cut into what it begins with and appends that make the whole of it, now and then saying a point again. */
function appendsOf(r: Random, whole: Run): { first: Run; rest: Unnumbered[] } {
  const id = whole.summary.id;
  const queues: Unnumbered[][] = [];
  const pieces = (n: number, make: (from: number, to: number) => Unnumbered): Unnumbered[] => {
    const out: Unnumbered[] = [];
    for (let from = 0; from < n || out.length === 0;) {
      const to = Math.min(n, from + 1 + r.below(4));
      // The last point may have been sent before it was complete.
      out.push(make(from > 0 && r.next() < 0.3 ? from - 1 : from, to));
      from = to;
      if (n === 0) break;
    }
    return out;
  };
  for (const s of whole.series) queues.push(pieces(s.ops_per_s.length, (a, b) => ({ kind: "points", run: id, series: [seriesPart(s, a, b)] })));
  for (const x of whole.resources) queues.push(pieces(x.t.length, (a, b) => ({ kind: "points", run: id, resources: [resourcePart(x, a, b)] })));
  for (const f of whole.summary.findings) queues.push([{ kind: "said", run: id, findings: [f] }]);
  const rest: Unnumbered[] = [];
  // Series begin in their order; after that whatever comes first comes first.
  for (const q of queues) rest.push(q.shift()!);
  while (queues.some((q) => q.length)) rest.push(r.pick(queues.filter((q) => q.length)).shift()!);
  rest.push({ kind: "said", run: id, claims: whole.summary.claims, events: whole.analysis.remarks! });
  rest.push({ kind: "summary", run: id, set: { verdict: whole.verdict, stages: whole.stages } });
  rest.push({ kind: "end", run: id, end: "done" });
  const first: Run = { ...whole, series: [], resources: [], verdict: "not yet", live: true,
    summary: { ...whole.summary, findings: [], claims: [] }, analysis: { ...whole.analysis, remarks: [] } };
  return { first, rest };
}

const numbered = (list: Unnumbered[], from = 1): Append[] => list.map((m, i) => ({ ...m, seq: from + i }) as Append);

function story(seed: number): { messages: Message[]; whole: Page } {
  const r = randomOf(seed);
  const [one, two] = [run(r, "one"), run(r, "two")];
  const a = appendsOf(r, one);
  const b = appendsOf(r, two);
  const rest: Unnumbered[] = [];
  const late: Unnumbered[] = [{ kind: "run", run: b.first, by: ["op"], groups: [] }, ...b.rest];
  while (a.rest.length + late.length) rest.push((late.length === 0 || (a.rest.length && r.next() < 0.5) ? a.rest : late).shift()!);
  const ended = (x: Run): Run => ({ ...x, end: "done", live: false });
  return { messages: [hello(page([a.first])), ...numbered(rest)], whole: { ...page([ended(one), ended(two)]), by: ["op"] } };
}

describe("the state of the page", () => {
  it("has where a run is for as long as it goes on, and nothing of it in the result", () => {
    const whole = run(randomOf(5), "one");
    const now = (n: number) => ({ phase: "measuring", stage_number: 1, outcomes: { ok: n }, missing: [] }) as unknown as NonNullable<Run["now"]>;
    let state = feed([hello(page([{ ...whole, live: true, now: now(1) }]))]);
    const before = state.page!.runs[0]!;
    state = apply(state, { kind: "now", seq: 1, run: "one", now: now(2) });
    const after = state.page!.runs[0]!;
    expect(after.now).toEqual(now(2));
    expect(after.series, "what it leaves as it was stays what it is").toBe(before.series);
    expect(apply(state, { kind: "now", seq: 2, run: "one", now: now(2) }).page, "told again it is the same").toBe(state.page);
    state = apply(state, { kind: "run", seq: 2, run: { ...whole, end: "done" } });
    state = apply(state, { kind: "end", seq: 3, run: null, end: "over" });
    expect(state.page!.runs[0]).toEqual({ ...whole, end: "done" });
    expect(state).toMatchObject({ over: "over", errors: 0, ignored: 0, resync: false });
  });

  it("is the same whether appends came one by one or all was told at once", () => {
    for (const seed of SEEDS) {
      const { messages, whole } = story(seed);
      const state = feed(messages);
      expect(state.troubles, `seed ${seed}`).toEqual([]);
      expect(state.page, `seed ${seed}`).toEqual(whole);
      expect(state.page, `seed ${seed}`).toEqual(feed([hello(whole)]).page);
      expect(state).toMatchObject({ seq: messages.length - 1, resync: false, ignored: 0, errors: 0 });
    }
  });

  it("does not change by repeats, in whatever order, nor by hellos in the middle", () => {
    for (const seed of SEEDS) {
      const { messages } = story(seed);
      const r = randomOf(seed * 7919);
      const states: State[] = [];
      let state = START;
      messages.forEach((m, i) => {
        state = apply(state, m);
        states.push(state);
        for (let k = r.below(4); k > 0; k--) {
          const back = r.below(i + 1);
          // What was sent before, or a hello: of now, or of a time that appends have overtaken.
          const of = r.pick([i, back]);
          state = apply(state, r.next() < 0.6 ? messages[back]! : hello(copy(states[of]!.page!), of));
        }
        expect(state, `seed ${seed}, message ${i}`).toMatchObject({ seq: i, resync: false });
        expect(state.page, `seed ${seed}, message ${i}`).toBe(states[i]!.page);
      });
      expect(state, `seed ${seed}`).toEqual(states.at(-1));
    }
  });

  it("notices what is missing, appends nothing in the wrong place, and is right after a hello", () => {
    for (const seed of SEEDS) {
      const { messages, whole } = story(seed);
      const r = randomOf(seed * 104729);
      const gone = 1 + r.below(messages.length - 2);
      const before = feed(messages.slice(0, gone));
      const after = feed(messages.slice(gone + 1), before);
      expect(after.resync, `seed ${seed}`).toBe(true);
      expect(after.page).toBe(before.page);
      const back = gone + 1 + r.below(messages.length - gone - 1);
      // The hello may be of any time after the loss; what comes with it goes on from there.
      const helped = feed([hello(copy(feed(messages.slice(0, back + 1)).page!), back), ...messages.slice(back + 1)], after);
      expect(helped, `seed ${seed}`).toMatchObject({ resync: false, seq: messages.length - 1 });
      expect(helped.page).toEqual(whole);
    }
  });

  it("never changes what it was given", () => {
    const freeze = <T>(x: T): T => {
      if (typeof x === "object" && x !== null && !Object.isFrozen(x)) {
        Object.freeze(x);
        Object.values(x).forEach(freeze);
      }
      return x;
    };
    for (const seed of SEEDS.slice(0, 40)) {
      let state = freeze({ ...START });
      for (const m of story(seed).messages) state = freeze(apply(state, freeze(m)));
      expect(state.errors, `seed ${seed}`).toBe(0);
    }
  });
});

describe("identity", () => {
  const r = randomOf(3);
  const start = feed([hello(page([run(r, "one"), run(r, "two")]))]);
  const [one, two] = start.page!.runs as [Run, Run];
  const after = (m: Unnumbered): Page => {
    const s = apply(start, { ...m, seq: 1 } as Append);
    expect(s.errors).toBe(0);
    return s.page!;
  };

  it("is kept by all that a message does not change", () => {
    const s = one.series[0]!;
    const grown = after({ kind: "points", run: "one", series: [{ ...seriesPart(s, 0, 1), at: s.ops_per_s.length }] });
    expect(grown.runs[1]).toBe(two);
    expect(grown.runs[0]).not.toBe(one);
    expect(grown.runs[0]!.series[0]).not.toBe(s);
    expect(grown.runs[0]!.series[1]).toBe(one.series[1]);
    for (const part of ["summary", "analysis", "resources", "stages", "spectra"] as const) expect(grown.runs[0]![part], part).toBe(one[part]);
    const said = after({ kind: "said", run: "two", findings: [finding(77)] });
    expect(said.runs[0]).toBe(one);
    expect(said.runs[1]!.summary.claims).toBe(two.summary.claims);
    expect(said.runs[1]!.summary.findings).not.toBe(two.summary.findings);
    expect(said.runs[1]!.analysis).toBe(two.analysis);
  });

  it("is kept by what is told again in the same words", () => {
    expect(after({ kind: "summary", run: "one", set: copy({ summary: one.summary, analysis: one.analysis, stages: one.stages }) })).toBe(start.page);
    expect(after({ kind: "run", run: copy(two) })).toBe(start.page);
    expect(apply(start, hello(copy(start.page!), 9, "another")).page).toBe(start.page);
    expect(after({ kind: "points", run: "one", series: [{ ...copy(one.series[0]!), at: 0 }] })).toBe(start.page);
  });

  it("follows a run, not its place", () => {
    const s = apply(start, hello({ ...page([copy(two), copy(one)]) }, 1));
    expect(s.page!.runs).toEqual([two, one]);
    expect(s.page!.runs[0]).toBe(two);
    expect(s.page!.runs[1]).toBe(one);
  });

  it("is not kept where anything differs", () => {
    const x = { a: [1, { b: null }], c: { d: 1 } };
    for (const y of [{ a: [1, { b: 0 }], c: { d: 1 } }, { a: [1], c: { d: 1 } }, { a: [1, { b: null }, 2], c: { d: 1 } }, { a: [1, { b: null }] }, { ...x, e: undefined }, { a: { 0: 1 }, c: { d: 1 } }]) {
      const z = share(x, y);
      expect(z).toStrictEqual(y);
      expect(z).not.toBe(x);
      if ("c" in y) expect((z as typeof x).c).toBe(x.c);
    }
    expect(share(x, copy(x))).toBe(x);
  });
});

describe("what a feed may get wrong", () => {
  const r = randomOf(11);
  const start = feed([hello(page([run(r, "one")]))]);
  const one = start.page!.runs[0]!;

  it("ignores kinds that it does not know, and counts them", () => {
    const s = feed([{ kind: "weather", seq: 1 }, { kind: "tides", seq: 2 }, { kind: "end", run: "one", end: "done", seq: 3 }], start);
    expect(s).toMatchObject({ ignored: 2, seq: 3, errors: 0, resync: false });
    expect(s.page!.runs[0]!.end).toBe("done");
  });

  it("shows what is of a run that it does not hold, and goes on", () => {
    const s = feed([{ kind: "said", run: "ghost", findings: [finding(1)], seq: 1 }, { kind: "said", run: "one", findings: [finding(2)], seq: 2 }], start);
    expect(s).toMatchObject({ errors: 1, resync: false, seq: 2 });
    expect(s.troubles[0]).toMatch(/Message 1 \(said\).*no run ghost/);
    expect(s.page!.runs[0]!.summary.findings.at(-1)).toEqual(finding(2));
  });

  it("asks for all of it again where points would be in the wrong place", () => {
    const s0 = one.series[0]!;
    const n = s0.ops_per_s.length;
    const odd: [string, unknown][] = [
      ["after a hole", { kind: "points", run: "one", series: [{ ...seriesPart(s0, 0, 1), at: n + 1 }] }],
      ["of a series that is not there", { kind: "points", run: "one", series: [{ ...seriesPart(s0, 0, 1), label: "new", at: 1 }] }],
      ["with columns that do not match", { kind: "points", run: "one", series: [{ ...seriesPart(s0, 0, 1), at: n, p50_ns: [1, 2] }] }],
      ["with times that do not match", { kind: "points", run: "one", resources: [{ ...one.resources[0]!, at: 0, t: [1] , v: [] }] }],
      ["without columns", { kind: "points", run: "one", series: [{ at: 0, label: "x" }] }],
      ["at no index", { kind: "points", run: "one", series: [{ ...seriesPart(s0, 0, 1), at: -1 }] }],
      ["in no list", { kind: "points", run: "one", series: 7 }],
      ["without a summary", { kind: "run", run: {} }],
    ];
    for (const [what, m] of odd) {
      const s = apply(start, { ...(m as object), seq: 1 } as Append);
      expect(s, what).toMatchObject({ errors: 1, resync: true });
      expect(s.page, what).toBe(start.page);
      const healed = apply(s, hello(copy(start.page!), 1));
      expect(healed, what).toMatchObject({ errors: 1, resync: false, troubles: [] });
      expect(healed.page, what).toBe(start.page);
    }
  });

  it("is bounded", () => {
    const many = range(MOST.points + 1);
    const big = apply(start, { kind: "points", seq: 1, run: "one", resources: [{ ...one.resources[0]!, at: 0, t: many, v: many }] });
    expect(big).toMatchObject({ errors: 1, resync: false });
    expect(apply(start, { kind: "said", seq: 1, run: "one", events: many.slice(0, MOST.said + 1).map(remark) })).toMatchObject({ errors: 1, resync: false });
    let s = start;
    for (const i of range(50)) s = trouble(trouble(s, `trouble ${i}`), "always the same");
    expect(s.troubles.length).toBe(MOST.troubles);
    expect(s.errors).toBe(100);
  });

  it("takes no summary for that of another run, and only what a summary may replace", () => {
    expect(apply(start, { kind: "summary", seq: 1, run: "one", set: { summary: { ...one.summary, id: "two" } } })).toMatchObject({ errors: 1, page: start.page });
    const s = apply(start, { kind: "summary", seq: 1, run: "one", set: { status: "[INVALID V07]", series: [], nonsense: 1 } as never });
    expect(s.page!.runs[0]).toEqual({ ...one, status: "[INVALID V07]" });
  });

  it("waits for a hello before anything else, and survives one that it cannot read", () => {
    const s = apply(START, { kind: "end", run: null, end: "x", seq: 4 });
    expect(s).toMatchObject({ page: null, resync: true, over: null });
    const odd = apply(start, { kind: "hello", seq: 5, feed: "f", page: { schema: "plimsoll.page/9" } } as never);
    expect(odd.page).toBe(start.page);
    expect(odd.troubles[0]).toMatch(/plimsoll.page\/9/);
  });

  it("knows numbers that began anew by the feed's name, and its end", () => {
    const s = feed([hello(page([]), 90), hello(page([one]), 3, "g"), { kind: "end", run: null, end: "stopped", seq: 4 }]);
    expect(s).toMatchObject({ feed: "g", seq: 4, over: "stopped" });
    expect(s.page!.runs).toHaveLength(1);
  });

  it("reads a message as text", () => {
    const m = parse('{"kind":"end","seq":1,"run":"one","end":"done"}');
    expect(apply(start, m).page!.runs[0]!.end).toBe("done");
  });
});
