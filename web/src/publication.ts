// The charts of a publication. Its text and tables are in the page already and need no script; this draws what they say, by the same
// modules as the report, and lets a reader save each drawing.
import { h } from "./dom";
import type { ChartElement } from "./chart";
import { barCharts, cliffCharts, costChart, curveCharts, loadCharts } from "./published";
import type { ChartData } from "./published-data";
import { images } from "./images";
import { saveable } from "./save";

const SCHEMA = "plimsoll.charts/1";

function draw(): void {
  const place = document.getElementById("charts");
  const text = document.getElementById("plimsoll-data")?.textContent;
  if (!place || !text) return;
  const data = JSON.parse(text) as ChartData;
  if (data.schema !== SCHEMA) throw new Error(`data of ${data.schema}, where this page draws ${SCHEMA}`);
  const all: [string, ChartElement | null][] = [
    ["rates", barCharts(data)], ["rate-over-size", curveCharts(data)], ["latency-against-rate", loadCharts(data)], ["rate-over-time", cliffCharts(data)], ["cost-against-rate", costChart(data)],
  ];
  const drawn = all.flatMap(([name, c]) => (c ? [saveable(c, name)] : []));
  if (drawn.length > 0) place.append(h("h2", { id: "drawings" }, "Charts"), ...drawn);
}

try {
  draw();
  // `plimsoll publish --images` reads them from the page.
  if (location.hash === "#images") void images();
} catch (e) {
  document.getElementById("charts")?.append(h("p", { class: "warning", role: "alert" }, `The charts could not be drawn: ${String(e)}. The tables have all figures.`));
  reportError(e);
}
