// What stands above every page: the mark, and the choice of light and dark.
import { h } from "./dom";

const SVG = "http://www.w3.org/2000/svg";

/** The load line: a circle with a line through it. */
export function plimsollMark(): SVGSVGElement {
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
export function themeSwitch(): HTMLElement {
  const set = (theme: Theme) => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  };
  const button = (theme: Theme, label: string, checked: boolean) => h("label", {}, h("input", { type: "radio", name: "theme", value: theme, checked, change: () => set(theme) }), label);
  return h("fieldset", { class: "theme" }, h("legend", { class: "offscreen" }, "Colours"), button("auto", "Auto", true), button("light", "Light", false), button("dark", "Dark", false));
}
