// Saves a drawing as SVG or PNG. The page's colours are variables and its fonts are inherited: a file alone has neither, so both are
// written into it.
import type { ChartElement } from "./chart";
import { h } from "./dom";

const INHERITED = ["font-family", "font-size", "font-weight", "font-variant-numeric", "fill", "stroke", "color", "stroke-width", "stroke-dasharray", "text-anchor"];
const SVG = "http://www.w3.org/2000/svg";

/** The drawing as a document of its own, on the page's background. */
export function svgText(figure: Element): string | null {
  const own = figure.querySelector<SVGSVGElement>(".drawing svg");
  if (!own) return null;
  const copy = own.cloneNode(true) as SVGSVGElement;
  const [from, to] = [[own, ...own.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((e, i) => {
    const style = getComputedStyle(e);
    const target = to[i] as SVGElement;
    target.setAttribute("style", INHERITED.map((name) => `${name}:${style.getPropertyValue(name).replaceAll('"', "'")}`).join(";"));
  });
  copy.querySelectorAll("style").forEach((e) => e.remove());
  const [width, height] = [Number(own.getAttribute("width")), Number(own.getAttribute("height"))];
  const ground = document.createElementNS(SVG, "rect");
  const colour = getComputedStyle(document.body).backgroundColor;
  for (const [n, v] of Object.entries({ width: "100%", height: "100%", fill: colour })) ground.setAttribute(n, v);
  copy.prepend(ground);
  const title = document.createElementNS(SVG, "title");
  title.textContent = figure.querySelector("figcaption")?.firstElementChild?.textContent ?? "";
  copy.prepend(title);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("viewBox", own.getAttribute("viewBox") ?? `0 0 ${width} ${height}`);
  copy.removeAttribute("aria-hidden");
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

/** The same as pixels, twice as fine as the screen's. */
export async function png(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = h("canvas", { width: image.naturalWidth * 2, height: image.naturalHeight * 2 });
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser draws no pixels");
  context.scale(2, 2);
  context.drawImage(image, 0, 0);
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("this browser makes no PNG"))), "image/png"));
}

function give(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A chart with buttons to save what it shows, and the file of its data. */
export function saveable(figure: ChartElement, name: string): HTMLElement {
  const status = h("span", { role: "status", class: "status" });
  const button = (label: string, act: (svg: string) => Promise<void>) => h("button", { type: "button", class: "small", click: () => {
    const svg = svgText(figure);
    if (!svg) { status.textContent = "There is no drawing yet"; return; }
    act(svg).then(() => { status.textContent = `${label}: saved`; }, (e: unknown) => { status.textContent = `${label}: ${String(e)}`; });
  } }, `Save as ${label}`);
  figure.append(h("div", { class: "tools save" },
    button("SVG", async (svg) => give(new Blob([svg], { type: "image/svg+xml" }), `${name}.svg`)),
    button("PNG", async (svg) => give(await png(svg), `${name}.png`)),
    " ", h("a", { href: `charts/${name}.csv` }, "Data as CSV"), status));
  figure.dataset["name"] = name;
  return figure;
}
