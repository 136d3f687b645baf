// The one picture of a run's first screen: by its kind, the chart that answers.
import type { ChartElement } from "./chart";
import { cycleChart } from "./cycles";
import type { Run } from "./feed";
import { differences, scaleChart } from "./joint";
import { kindOf } from "./kinds";
import { bucketCharts, searchesChart } from "./limits";
import { linesChart } from "./lines";
import { hasSizes, modelCharts, overSizes, sweepCharts } from "./size";
import { rateCharts } from "./time";

/** What the picture is taken from: there it need not be drawn again. */
export type Source = "differences" | "scaling" | "model" | "bucket" | "search" | "cycles" | "sizes" | "lines" | "rate";

export function pictured(run: Run): Source | null {
  const a = run.analysis;
  const course: Source | null = run.series.length > 0 ? "rate" : null;
  switch (kindOf(run)) {
    case "compare": return "differences";
    case "scale": return "scaling";
    // Caps over sizes with their knee; where one size was probed only, the drains of the bucket.
    case "limits": return a.size_models.some(overSizes) ? "model" : a.buckets.some((b) => b.drains.length + b.recoveries.length > 0) ? "bucket" : course;
    case "search": return "search";
    case "cycles": return "cycles";
    case "sweep": return hasSizes(run) ? "sizes" : "lines";
    case "lines": return "lines";
    case "time": return course;
    // Of a run that goes on the warm-up is drawn, too.
    case "nothing": return run.live ? course : null;
  }
}

export function picture(run: Run): ChartElement | null {
  const a = run.analysis;
  switch (pictured(run)) {
    case "differences": return differences(a.comparisons);
    case "scaling": return a.scalings.map(scaleChart).find((c) => c !== null) ?? null;
    case "model": return modelCharts(a.size_models.filter(overSizes).slice(0, 1))[0] ?? null;
    case "bucket": return bucketCharts(a.buckets)[0] ?? null;
    case "search": return searchesChart(a.saturations);
    case "cycles": return cycleChart(run);
    case "sizes": return sweepCharts(run)[0] ?? null;
    case "lines": return linesChart(run);
    case "rate": return rateCharts(run)[0] ?? null;
    case null: return null;
  }
}
