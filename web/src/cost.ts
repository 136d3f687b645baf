// What a run costs: figures with their interval and arithmetic, and what they rest on. No DOM, so that tests can read it.
// The same words and digits as crates/report/src/cost.rs.
import type { CostFigure, CostSummary, Estimate, Run } from "./feed";
import { MISSING, significant } from "./format";
import { table, type Table } from "./table";

/** To the cent, or three digits of what is less than one; an end without a bound is null. */
export function money(x: number | null): string {
  if (x === null || !Number.isFinite(x) || Math.abs(x) >= Number.MAX_VALUE) return "unbounded";
  if (x !== 0 && Math.abs(x) < 1) return significant(x, 3);
  return x.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ",");
}

/** `142.56 (129.60 to 155.52)`; without an interval where it is exact. */
export function amount(e: Estimate): string {
  const value = money(e.value);
  const [low, high] = [money(e.low), money(e.high)];
  return low === value && high === value ? value : `${value} (${low} to ${high})`;
}

/** Figures that each line of results has, with the head of their column. */
const BY_LINE = [["per_1000_ops_per_s", ">a month per 1,000"], ["per_mib_per_s", ">a month per MiB/s"], ["month_at_rate", ">a month at this rate"]] as const;

export function costTable(c: CostSummary): Table {
  const lines = [...new Set(c.figures.flatMap((f) => f.workload ?? []))];
  const of = (line: string, name: string) => c.figures.find((f) => f.name === name && f.workload === line);
  return table(`Cost in ${c.currency}`, 1, ["line", ...BY_LINE.map(([, head]) => head)],
    lines.map((line) => [line, ...BY_LINE.map(([name]) => { const f = of(line, name); return f ? amount(f.amount) : ""; })]));
}

const NAMES: Record<string, string> = {
  month: "A month of it", per_usable_tib: "A month of a usable TiB", run: "The load of this run", month_at_rate: "A month at this rate",
  per_1000_ops_per_s: "A month of 1,000 a second", per_mib_per_s: "A month of 1 MiB/s",
};

/** Each figure with all numbers that go into it. */
export function arithmetic(c: CostSummary): Table {
  const what = (f: CostFigure) => `${NAMES[f.name] ?? f.name.replaceAll("_", " ")}${f.workload ? `: ${f.workload}` : ""}`;
  return table("Figures and their arithmetic", 1, ["figure", ">amount", "unit", "arithmetic"], c.figures.map((f) => [what(f), amount(f.amount), f.unit, f.formula]));
}

const highest = (f: CostFigure): number => f.amount.high ?? Infinity;

/** The dearest month at the measured rates, at the upper end of its interval: what a bill would be at worst. */
export function worstMonth(c: CostSummary): CostFigure | null {
  return c.figures.filter((f) => f.name === "month_at_rate").sort((a, b) => highest(b) - highest(a))[0] ?? null;
}

/** What the figures take as given; without it an amount says nothing. */
export function assumptions(run: Run, c: CostSummary): [string, string][] {
  const worst = worstMonth(c);
  const prices = run.plan ? " The prices themselves are in the plan, under Provenance." : "";
  return [
    ...(worst ? [["Worst case a month", `${money(highest(worst))} ${worst.unit}: ${worst.workload ?? "the line"} at the upper end of its interval, without a pause for a month of ${c.month_s / 3600} h`] as [string, string]] : []),
    ["Paid for", c.subject], ["Prices of", `${c.date}, ${c.region}`], ["Source, as given", c.source],
    ["Price file", c.sha256 ? `SHA-256 ${c.sha256}` : "none: the prices were written in the plan"],
    ["Taken as exact", `the prices; intervals are of the measured rate.${prices}`],
    ...(c.counted?.length ? [["Requests", `${c.counted.join("; ")}. An op that is in none of them is not paid for`] as [string, string]] : []),
    ...(c.figures.some((f) => f.name === "run") ? [["The load of this run", "what its ops sent, warm-up included; data made ready before it and removed after it is not in it"] as [string, string]] : []),
    ...(c.open ?? []).map((why): [string, string] => ["Not known", why]),
  ];
}

/** Null: the run was told no prices. Of what is void the rates gave no figure; the month as provisioned holds all the same. */
export function ofCost(run: Run): string | null {
  const c = run.summary.cost;
  if (!c) return null;
  const one = (name: string) => c.figures.find((f) => f.name === name);
  const rated = c.figures.filter((f) => f.name === "month_at_rate");
  const worst = worstMonth(c);
  const [month, load] = [one("month"), one("run")];
  const said = [
    ...(rated.length === 1 ? [`${amount(rated[0]!.amount)} ${rated[0]!.unit} at this rate`]
      : worst ? [`at most ${money(highest(worst))} ${worst.unit} at the rate of ${worst.workload ?? MISSING}`]
        : month ? [`${amount(month.amount)} ${month.unit}`] : []),
    ...(load ? [`this load ${amount(load.amount)} ${load.unit}`] : []),
  ];
  return `${said.length ? said.join("; ") : "no figure can be given"} (prices of ${c.date})`;
}
