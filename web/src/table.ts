// Tables: built once, shown as HTML, copied as Markdown or CSV.
import { h, uniqueId } from "./dom";
import { keyed, own } from "./keyed";

export interface Head { text: string; right?: boolean }

export interface Table { title: string; heads: Head[]; keys: number; rows: string[][] }

/** Heads that begin with ">" are numbers, aligned to the right. */
export function table(title: string, keys: number, heads: string[], rows: string[][]): Table {
  const used = heads.map((_, i) => i < keys || rows.some((r) => r[i] !== ""));
  const keep = <T>(list: T[]): T[] => list.filter((_, i) => used[i]);
  return {
    title, keys,
    heads: keep(heads).map((t) => (t.startsWith(">") ? { text: t.slice(1), right: true } : { text: t })),
    rows: rows.map(keep),
  };
}

export function toMarkdown(t: Table): string {
  const cell = (s: string) => s.replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("\n", " ");
  const line = (cells: string[]) => `| ${cells.join(" | ")} |\n`;
  return line(t.heads.map((x) => cell(x.text))) + `|${t.heads.map((x) => (x.right ? "---:|" : "---|")).join("")}\n` + t.rows.map((r) => line(r.map(cell))).join("");
}

export function toCsv(t: Table): string {
  const cell = (s: string) => (/[",\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
  return [t.heads.map((x) => x.text), ...t.rows].map((r) => r.map(cell).join(",")).join("\r\n") + "\r\n";
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Opened from a file, some browsers refuse the clipboard; the old way still works.
    const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function copyButton(label: string, text: () => string): HTMLButtonElement {
  return h("button", { type: "button", class: "small", click: (event) => {
    const status = (event.currentTarget as HTMLElement).parentElement!.querySelector("[role=status]")!;
    void copy(text()).then((done) => { status.textContent = done ? `${label}: copied` : "The browser refused to copy"; });
  } }, `Copy as ${label}`);
}

export function tableElement(t: Table, options: { copy?: boolean; caption?: boolean } = {}): HTMLElement {
  const id = uniqueId("table");
  const cell = (r: string[]) => keyed(r.slice(0, t.keys).join("|"), h("tr", {}, ...r.map((text, i) => {
    const right = t.heads[i]?.right ? "number" : null;
    // A long name may break on a phone, so that the figures beside it are seen.
    const long = text.length > 20 ? "long" : null;
    return i < t.keys ? h("th", { scope: "row", class: right ?? long }, text) : h("td", { class: right }, text);
  })));
  const facts = t.heads.length === 2 && !t.heads[1]?.right;
  const element = h("table", { class: facts ? "facts" : null },
    h("caption", { id, class: options.caption === false ? "offscreen" : null }, h("span", {}, t.title)),
    h("thead", {}, h("tr", {}, ...t.heads.map((x) => h("th", { scope: "col", class: x.right ? "number" : null }, x.text)))),
    h("tbody", {}, ...t.rows.map(cell)));
  const scroller = h("div", { class: "scroll", role: "region", "aria-labelledby": id, tabindex: 0 }, element);
  if (!options.copy) return keyed(t.title, scroller);
  const status = own(h("span", { role: "status", class: "status" }));
  const tools = h("div", { class: "tools" }, copyButton("Markdown", () => toMarkdown(t)), copyButton("CSV", () => toCsv(t)), status);
  return keyed(t.title, h("div", { class: "table" }, scroller, tools));
}
