// Brings feed, state and view together: every message changes the state, and the state is shown.
import { connect } from "./connection";
import { askAgain, embedded, FeedError, pushed, upToHere, type Message, type Unread } from "./feed";
import { h } from "./dom";
import { apply, START, trouble, type State } from "./state";
import { notices, View } from "./view";

/** At most this share of the time is spent on drawing; what comes meanwhile is drawn together. */
const DRAWING = 0.25;

let state: State = START;
let shown: State = START;
let view: View | null = null;
let waiting = false;

function failed(e: unknown): void {
  state = trouble(state, e instanceof FeedError ? e.message : `This report could not be shown: ${String(e)}`);
}

/** Where the page is not to be had, above what is there instead. */
function alone(): void {
  document.querySelectorAll("#main > .warning").forEach((e) => e.remove());
  document.getElementById("main")?.prepend(...notices(state).map((t) => h("p", { class: "warning", role: "alert" }, t)));
}

function show(): void {
  shown = state;
  try {
    if (!state.page) return alone();
    view ??= new View();
    view.show(state, state.page);
    upToHere(state.feed, state.seq);
  } catch (e) {
    failed(e);
    shown = state;
    alone();
    reportError(e);
  }
}

/** A page in the background is not drawn; it catches up when it is looked at. */
function soon(): void {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    const from = performance.now();
    show();
    setTimeout(() => {
      waiting = false;
      if (state !== shown) soon();
    }, (performance.now() - from) * (1 / DRAWING - 1));
  });
}

function receive(message: Message | Unread): void {
  const before = state;
  state = apply(state, message);
  if (state.resync && !before.resync) askAgain(state.feed, state.seq);
  if (state !== shown) soon();
}

/** A link to what is folded away opens it. */
function openTarget(): void {
  const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  if (target instanceof HTMLDetailsElement) target.open = true;
}
window.addEventListener("hashchange", openTarget);

try {
  embedded(receive);
} catch (e) {
  failed(e);
}
pushed((e) => {
  failed(e);
  soon();
})(receive);
// The first state at once, not with the next frame: nobody should see the page empty.
show();
openTarget();
connect();
