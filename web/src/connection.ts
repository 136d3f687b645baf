// Keeps the connection of a live page: hands on what its server sends, goes on where it was cut off, and says when it is.
// In a report there is nobody to connect to, and nothing of this happens.

const CUT = 3000;

const meta = (name: string): string | null => document.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content ?? null;

/** Whether this page is fed by a server. */
export const isLive = (): boolean => meta("plimsoll-live") !== null;

class Connection {
  #source: EventSource | null = null;
  /** Of the last message that came; null: the next is to be a hello. */
  #last: string | null = null;
  #over = false;
  #cut: ReturnType<typeof setTimeout> | undefined;
  readonly #said = document.createElement("p");

  constructor(readonly path: string) {
    this.#said.className = "connection";
    this.#said.setAttribute("role", "status");
    document.body.prepend(this.#said);
    document.addEventListener("plimsoll:resync", () => this.#open(true));
    document.addEventListener("plimsoll:stop", () => void this.#stop());
    // Browsers allow six connections to one server over all tabs: a page that nobody sees keeps none.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.#open(false)));
    window.addEventListener("online", () => this.#open(false));
    if (!document.hidden) this.#open(false);
  }

  #close(): void {
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#cut);
  }

  #open(anew: boolean): void {
    if (this.#over) return;
    this.#close();
    if (anew) this.#last = null;
    const source = new EventSource(`${this.path}/events${this.#last === null ? "" : `?after=${this.#last}`}`);
    this.#source = source;
    source.onopen = () => this.#say("");
    source.onmessage = (e: MessageEvent<string>) => this.#came(e);
    source.onerror = () => {
      if (this.#over) return;
      this.#say(`The connection is cut since ${new Date().toLocaleTimeString("en-GB")}: what is shown is of then. Trying again.`);
      // A browser gives up after an answer that is none; and an address without its place would begin anew.
      this.#close();
      this.#cut = setTimeout(() => this.#open(false), CUT);
    };
  }

  #came(e: MessageEvent<string>): void {
    this.#last = e.lastEventId || this.#last;
    this.#say("");
    document.dispatchEvent(new CustomEvent("plimsoll:message", { detail: e.data }));
    const m = JSON.parse(e.data) as { kind?: string; run?: unknown };
    if (m.kind === "end" && m.run === null) {
      this.#over = true;
      this.#close();
    }
  }

  #say(text: string): void {
    if (this.#said.textContent !== text) this.#said.textContent = text;
  }

  async #stop(): Promise<void> {
    const tell = (text: string) => { const at = document.getElementById("stop-said"); if (at) at.textContent = text; };
    try {
      const answer = await fetch(`${this.path}/stop`, { method: "POST", headers: { "X-Plimsoll-Token": meta("plimsoll-stop") ?? "" } });
      tell(await answer.text());
    } catch {
      tell("The server was not reached: the run was not stopped from here.");
    }
  }
}

export function connect(): void {
  const path = meta("plimsoll-live");
  if (path !== null) new Connection(path);
}
