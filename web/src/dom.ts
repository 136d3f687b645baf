// The smallest useful way to build elements. Text is always text: nothing of a run is ever parsed as markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

const heard = new WeakMap<Element, Record<string, (event: Event) => void>>();

/** One listener of a kind an element, which can be replaced: what an element does has to follow what it shows. */
function listen(element: Element, name: string, act: (event: Event) => void): void {
  const all = heard.get(element) ?? {};
  heard.set(element, all);
  if (!all[name]) element.addEventListener(name, (event) => heard.get(element)?.[name]?.(event));
  all[name] = act;
}

/** Lets one element do what another was made to do. */
export function listenLike(element: Element, other: Element): void {
  for (const [name, act] of Object.entries(heard.get(other) ?? {})) listen(element, name, act);
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") listen(element, name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same of a drawing. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}, ...children: (Node | string)[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

let ids = 0;
export const uniqueId = (prefix: "table" | "chart" | "choice"): string => `${prefix}-${++ids}`;
/** Made by the page, for what refers to it; says nothing of what it stands at. */
export const isUniqueId = (id: string): boolean => /^(table|chart|choice)-\d+$/.test(id);
