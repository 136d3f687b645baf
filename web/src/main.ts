// Puts the page together. It shows whatever state of the data the feed brings.
import { h } from "./dom";
import { embedded, FeedError, type Page, type Run } from "./feed";
import { groupChart } from "./groups";
import { badge, groupSection, runSections, verdict, type Section } from "./sections";

const SVG = "http://www.w3.org/2000/svg";

/** The load line: a circle with a line through it. */
function plimsollMark(): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  for (const [n, v] of Object.entries({ viewBox: "0 0 40 28", width: "40", height: "28", "aria-hidden": "true", class: "mark" })) svg.setAttribute(n, v);
  const circle = document.createElementNS(SVG, "circle");
  for (const [n, v] of Object.entries({ cx: "20", cy: "14", r: "10.5", fill: "none", "stroke-width": "3" })) circle.setAttribute(n, v);
  const line = document.createElementNS(SVG, "line");
  for (const [n, v] of Object.entries({ x1: "2", x2: "38", y1: "14", y2: "14", "stroke-width": "3.4" })) line.setAttribute(n, v);
  svg.append(circle, line);
  return svg;
}

type Theme = "auto" | "light" | "dark";

/** Light and dark follow the system unless chosen here; the choice holds for this view of the page only. */
function themeSwitch(): HTMLElement {
  const set = (theme: Theme) => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  };
  const button = (theme: Theme, label: string, checked: boolean) => h("label", {}, h("input", { type: "radio", name: "theme", value: theme, checked, change: () => set(theme) }), label);
  return h("fieldset", { class: "theme" }, h("legend", { class: "offscreen" }, "Colours"), button("auto", "Auto", true), button("light", "Light", false), button("dark", "Dark", false));
}

const section = (s: Section, prefix: string): HTMLElement =>
  h("section", { id: prefix + s.id, "aria-labelledby": `${prefix}${s.id}-title` }, h("h2", { id: `${prefix}${s.id}-title` }, s.title), ...s.body);

const contents = (sections: Section[], prefix: string): HTMLElement =>
  h("nav", { "aria-label": "Contents", class: "contents" }, h("ul", {}, ...sections.map((s) => h("li", {}, h("a", { href: `#${prefix}${s.id}` }, s.title)))));

function one(run: Run): Node[] {
  const sections = runSections(run);
  return [verdict(run), contents(sections, ""), ...sections.map((s) => section(s, ""))];
}

function several(page: Page): Node[] {
  const groups = groupSection(page);
  const figure = groupChart(page);
  if (figure) groups.body.splice(1, 0, h("div", { class: "grid one" }, figure));
  const runs = page.runs.map((run, i) => {
    // A run's charts are made when it is opened: thirty runs at once would be slow, and nobody reads them so.
    const details = h("details", { class: "run" }, h("summary", {}, h("span", { class: "name" }, run.summary.id), badge(run)));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(verdict(run), ...runSections(run).map((s) => section(s, `run${i + 1}-`)));
    });
    return details;
  });
  return [section(groups, ""), h("section", { id: "runs", "aria-labelledby": "runs-title" }, h("h2", { id: "runs-title" }, "Runs"), ...runs)];
}

function show(page: Page): void {
  const app = document.getElementById("app");
  if (!app) return;
  const single = page.runs.length === 1 ? page.runs[0]! : null;
  const title = single ? single.summary.id : `${page.runs.length} runs`;
  document.title = `${title} - Plimsoll`;
  app.replaceChildren(
    h("header", { class: "top" }, h("div", { class: "brand" }, plimsollMark() as unknown as Node, h("span", {}, "Plimsoll")), h("h1", {}, title), themeSwitch()),
    h("main", { id: "main", tabindex: -1 }, ...(single && page.groups.length === 0 ? one(single) : several(page))),
    h("footer", {}, h("p", {}, `Made by Plimsoll ${page.made_by}. This file holds everything it shows and asks the network for nothing.`)));
}

// Paper shows what is folded away on screen, and charts take the width of the sheet.
window.addEventListener("beforeprint", () => {
  for (const d of document.querySelectorAll<HTMLDetailsElement>("details.run")) d.open = true;
});

try {
  embedded(show);
} catch (e) {
  const text = e instanceof FeedError ? e.message : `This report could not be shown: ${String(e)}`;
  document.getElementById("main")?.prepend(h("p", { class: "warning", role: "alert" }, text));
  if (!(e instanceof FeedError)) throw e;
}
