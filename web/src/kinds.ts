// What kind of run a run is: by that its first screen has the one picture and the one table that answer it.
import type { Run, Workload } from "./feed";

/** Of what several runs say together: `compare`, `scale`. `cycles`: a benchmark that was repeated again and again. */
export type Kind = "compare" | "scale" | "limits" | "search" | "cycles" | "sweep" | "lines" | "time" | "nothing";

/** Limits were looked for; those of a plain run fell to it, and each of them is of one line. */
export const isProbed = (run: Run): boolean => run.summary.limits.some((l) => l.evidence.every(([name]) => name !== "line"));

/** Fewer cycles are repeats, and no course over time. */
const LEAST_CYCLES = 4;

/** The lines of a benchmark that was repeated, each with its rate cycle by cycle; the sum of several has none. */
export const cycling = (run: Run): Workload[] =>
  run.summary.labels["suite"] === "file" ? run.summary.workloads.filter((w) => !w.together && w.op !== "total" && (w.each_ops_per_s ?? []).length >= LEAST_CYCLES) : [];

/** Lines that ran one after the other, and are no sizes of one thing: each is a bar. */
const apart = (run: Run): boolean => {
  return run.summary.workloads.length > 1 && run.stages.length !== 1 && !run.summary.workloads.every((w) => w.name === run.summary.workloads[0]!.name);
};

export function kindOf(run: Run): Kind {
  const { summary: s, analysis: a } = run;
  if (s.workloads.length === 0) return a.comparisons.length ? "compare" : a.scalings.length ? "scale" : "nothing";
  if (isProbed(run)) return "limits";
  if (a.saturations.some((x) => x.points.length > 1)) return "search";
  if (cycling(run).length > 0) return "cycles";
  if (s.labels["suite"] !== undefined) return "lines";
  if (run.sweep) return "sweep";
  return apart(run) ? "lines" : "time";
}
