// Keeps what is on the page while what it shows changes: elements are kept by key and brought up to date in place, so
// that focus, scrolling, selection and what was opened stay with the reader. What has not changed is not touched.
import { h, isUniqueId, listenLike } from "./dom";

/** An element that may have a key among its neighbours, and a state of its own. */
export interface Living extends HTMLElement {
  key?: string;
  /** Takes over what a newer one of its kind would show, and keeps its own state. */
  renew?: (newer: Living) => void;
  /** It, or what it is in, leaves the page. */
  leave?: () => void;
}

export function keyed<E extends HTMLElement>(key: string, element: E): E {
  (element as Living).key = key;
  return element;
}

/** What a reader, or the element itself, puts into it is kept as it is. */
export function own<E extends HTMLElement>(element: E): E {
  (element as Living).renew = () => {};
  return element;
}

function leave(node: Node): void {
  if (!(node instanceof Element)) return;
  (node as Living).leave?.();
  for (const child of node.children) leave(child);
}

function sameAttributes(old: Element, newer: Element): void {
  // What is open is the reader's choice.
  for (const { name } of [...old.attributes]) if (!newer.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of newer.attributes) {
    const had = old.getAttribute(name);
    if (had !== value && !(had !== null && isUniqueId(had) && isUniqueId(value))) old.setAttribute(name, value);
  }
}

const kind = (node: Node): string => {
  const id = node instanceof Element && !isUniqueId(node.id) ? node.id : "";
  return `${node.nodeName} ${(node as Living).key ?? ""} ${id}`;
};

/** Brings `old` to what `newer` shows; both are of one kind. `newer` is used up. */
export function morph(old: Node, newer: Node): void {
  if (old instanceof Element && newer instanceof Element) {
    const living = old as Living;
    if (living.renew) return living.renew(newer as Living);
    sameAttributes(old, newer);
    listenLike(old, newer);
    morphChildren(old, [...newer.childNodes]);
  } else if (old.nodeValue !== newer.nodeValue) old.nodeValue = newer.nodeValue;
}

/** Makes `children` what `parent` holds; those of the same kind and key that are there already stay. */
export function morphChildren(parent: Element, children: Node[]): void {
  const there = new Map<string, Node[]>();
  for (const c of parent.childNodes) if (!children.includes(c)) there.set(kind(c), [...(there.get(kind(c)) ?? []), c]);
  const shown = children.map((newer) => {
    const old = newer.parentNode === parent ? null : there.get(kind(newer))?.shift();
    if (!old) return newer;
    morph(old, newer);
    leave(newer);
    return old;
  });
  place(parent, shown);
}

/** Nothing is taken out that stays: an element that is moved loses its focus and its scrolling. */
function place(parent: Element, shown: Node[]): void {
  const stay = new Set(shown);
  for (const c of [...parent.childNodes]) if (!stay.has(c)) {
    leave(c);
    c.remove();
  }
  let next = parent.firstChild;
  for (const node of shown) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
}

/** A part of the page under its key; not present: of these inputs there is nothing to show. */
export interface Item { key: string; present: boolean }

interface Made { inputs: readonly unknown[]; present: boolean; /** Made, and not shown yet. */ pending: HTMLElement | null }

/** The children of an element, each made again only when what it is made of has changed. */
export class Keyed {
  readonly #made = new Map<string, Made>();
  readonly #shown = new Map<string, HTMLElement>();

  constructor(readonly parent: Element) {}

  item(key: string, inputs: readonly unknown[], make: () => HTMLElement | null): Item {
    let made = this.#made.get(key);
    if (!made || made.inputs.length !== inputs.length || inputs.some((x, i) => !Object.is(x, made!.inputs[i]))) {
      const pending = make();
      made = { inputs, present: pending !== null, pending };
      this.#made.set(key, made);
    }
    return { key, present: made.present };
  }

  /** These and no others, in this order. */
  show(items: Item[]): void {
    const known = new Set(items.map((x) => x.key));
    for (const key of [...this.#made.keys()]) if (!known.has(key)) this.#made.delete(key);
    const present = items.filter((x) => x.present).map((x) => x.key);
    const elements = present.map((key) => this.#bring(key, this.#made.get(key)!));
    for (const key of [...this.#shown.keys()]) if (!present.includes(key)) this.#shown.delete(key);
    place(this.parent, elements);
  }

  #bring(key: string, made: Made): HTMLElement {
    const [old, fresh] = [this.#shown.get(key), made.pending];
    made.pending = null;
    if (old && fresh && old !== fresh && kind(old) === kind(fresh)) {
      morph(old, fresh);
      leave(fresh);
      return old;
    }
    const element = (fresh ?? old)!;
    this.#shown.set(key, element);
    return element;
  }
}

/** A details element that makes what it holds when it is opened. */
export interface Fold extends HTMLDetailsElement { renew: (newer: Living) => void; made: () => () => (Node | null)[] }

/** Folded away, and made when it is opened. */
export function unfold(title: string | Node, make: () => (Node | null)[], attributes: Record<string, string> = {}): Fold {
  let filling = make;
  let filled = false;
  const summary = h("summary", {}, title);
  const details = h("details", { class: "data", ...attributes }, summary) as Fold;
  const fill = () => {
    filled = true;
    morphChildren(details, [summary, ...filling().filter((x) => x !== null)]);
  };
  details.addEventListener("toggle", () => {
    if (details.open && !filled) fill();
  });
  details.made = () => filling;
  details.renew = (newer) => {
    morph(summary, newer.firstElementChild!);
    filling = (newer as Fold).made();
    if (details.open && filled) fill();
    else {
      filled = false;
      morphChildren(details, [summary]);
    }
  };
  return details;
}
