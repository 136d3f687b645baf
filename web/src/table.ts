// Tables: built once, shown as HTML, copied as Markdown or CSV.
import { h, uniqueId } from "./dom";
import { keyed, own } from "./keyed";

/** `spare`: a phone leaves it out, for there it would be cut off; the copies have it. */
export interface Head { text: string; right?: boolean; spare?: boolean }

export interface Table { title: string; heads: Head[]; keys: number; rows: string[][] }

/** Heads that begin with ">" are numbers, aligned to the right; with ">>", numbers that a phone leaves out. */
export function table(title: string, keys: number, heads: string[], rows: string[][]): Table {
  const used = heads.map((_, i) => i < keys || rows.some((r) => r[i] !== ""));
  const keep = <T>(list: T[]): T[] => list.filter((_, i) => used[i]);
  return {
    title, keys,
    heads: keep(heads).map((t) => (t.startsWith(">>") ? { text: t.slice(2), right: true, spare: true } : t.startsWith(">") ? { text: t.slice(1), right: true } : { text: t })),
    rows: rows.map(keep),
  };
}

/** Only these columns, by their heads, beside the keys; none named: all of them. */
export function picked(t: Table, columns: readonly string[]): Table {
  if (columns.length === 0) return t;
  const wanted = new Set(columns.map((c) => c.toLowerCase()));
  const keep = <T>(list: T[]): T[] => list.filter((_, i) => i < t.keys || wanted.has(t.heads[i]!.text.toLowerCase()));
  return { ...t, heads: keep(t.heads), rows: t.rows.map(keep) };
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

/** What a line says of itself whose figures must not be quoted. */
const isVoid = (text: string): boolean => /^\[?INVALID\b/.test(text);

/** Which codes, as short as a phone has room for. */
const codesOf = (text: string): string => text.replace(/[[\]]|INVALID,? ?/g, "") || "invalid";

export function tableElement(t: Table, options: { copy?: boolean; caption?: boolean; void?: boolean } = {}): HTMLElement {
  const id = uniqueId("table");
  // Of one figure among others that is void, only it: the rest of its row may be quoted.
  const ofRow = (r: string[]) => r.find((text, i) => isVoid(text) && !t.heads[i]?.right);
  const cell = (r: string[]) => keyed(r.slice(0, t.keys).join("|"), h("tr", { class: options.void || ofRow(r) ? "void" : null }, ...r.map((text, i) => {
    const right = t.heads[i]?.right ? `number${t.heads[i]!.spare ? " spare" : ""}${text.includes(" (") ? " range" : ""}${isVoid(text) ? " code" : ""}` : isVoid(text) ? "code" : null;
    // A long name may break on a phone, so that the figures beside it are seen.
    const long = text.length > 20 ? "long" : null;
    return i < t.keys ? h("th", { scope: "row", class: right ?? long, ...(i === 0 && ofRow(r) ? { "data-code": codesOf(ofRow(r)!) } : {}) }, text) : h("td", { class: right ?? (text.length > 60 ? "long" : null) }, text);
  })));
  const facts = t.heads.length === 2 && !t.heads[1]?.right;
  const element = h("table", { class: facts ? "facts" : null },
    h("caption", { id, class: options.caption === false ? "offscreen" : null }, h("span", {}, t.title)),
    h("thead", {}, h("tr", {}, ...t.heads.map((x) => h("th", { scope: "col", class: x.right ? (x.spare ? "number spare" : "number") : null }, x.text)))),
    h("tbody", {}, ...t.rows.map(cell)));
  // A group and no region: a page has many tables, and as landmarks they would hide the few that guide.
  const scroller = h("div", { class: "scroll", role: "group", "aria-labelledby": id, tabindex: 0 }, element);
  if (!options.copy) return keyed(t.title, scroller);
  const status = own(h("span", { role: "status", class: "status" }));
  const tools = h("div", { class: "tools" }, copyButton("Markdown", () => toMarkdown(t)), copyButton("CSV", () => toCsv(t)), status);
  return keyed(t.title, h("div", { class: "table" }, scroller, tools));
}
