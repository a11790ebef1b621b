// What one server reported beside its answers: log messages, lines of standard error and states, the newest below.

import { element } from "./dom.js";
import { clock, parseTime } from "./format.js";

/** @import { HubEvent } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

/** The lines that are shown. */
const MAX_LINES = 500;

const KINDS = new Set(["log", "stderr", "server_state"]);

export class ServerLog {
  root = element("div", { id: "server-log", class: "server-log", role: "log", "aria-label": "Logs", tabindex: 0 });
  #store;
  #name = "";
  /** The number of the last event that is shown. */
  #last = -1;
  #generation = -1;
  #empty = element("p", { class: "quiet hint" }, "Nothing yet: no log message, no line on standard error, no change of its state.");
  #output = element("pre", { class: "output" });

  /** @param {Store} store */
  constructor(store) {
    this.#store = store;
  }

  /** @param {string} name */
  open(name) {
    this.#name = name;
    this.#last = -1;
    this.root.replaceChildren(this.#empty);
    this.root.dataset.server = name;
  }

  /**
   * Adds what came since.
   * @param {string} output what the program printed last, in case its lines were before the events that are kept
   */
  draw(output) {
    if (this.root.hidden || this.#name === "") return;
    if (this.#generation !== this.#store.generation) {
      this.#generation = this.#store.generation;
      this.open(this.#name);
    }
    const isAtEnd = this.root.scrollTop + this.root.clientHeight >= this.root.scrollHeight - 8;
    const added = this.#added().slice(-MAX_LINES);
    this.#last = this.#store.notes.at(-1)?.event.seq ?? this.#last;
    if (added.length > 0) {
      this.#empty.remove();
      this.root.append(...added.map(line));
      while (this.root.childElementCount > MAX_LINES) this.root.firstElementChild?.remove();
    }
    this.#drawOutput(output);
    if (added.length > 0 && isAtEnd) this.root.scrollTop = this.root.scrollHeight;
  }

  /** The events after the last one, from the newest back. */
  #added() {
    /** @type {HubEvent[]} */
    const added = [];
    const { notes } = this.#store;
    for (let at = notes.length - 1; at >= 0; at -= 1) {
      const event = notes[at]?.event;
      if (!event || event.seq <= this.#last) break;
      if (event.server === this.#name && KINDS.has(event.kind)) added.push(event);
    }
    return added.reverse();
  }

  /** @param {string} output */
  #drawOutput(output) {
    const isNeeded = output !== "" && this.root.querySelector('[data-kind="stderr"]') === null;
    if (!isNeeded) return this.#output.remove();
    this.#empty.remove();
    if (this.#output.textContent !== output) this.#output.textContent = output;
    if (this.root.firstElementChild !== this.#output) this.root.prepend(this.#output);
  }
}

/** @param {HubEvent} event */
function line(event) {
  const level = event.kind === "log" ? (event.level ?? "") : event.kind === "server_state" && event.state === "failed" ? "error" : "";
  return element("p", { class: "log-line", "data-kind": event.kind, "data-level": level },
    element("time", { class: "quiet" }, clock(parseTime(event.time))), " ",
    element("span", { class: "log-kind" }, event.kind === "server_state" ? "state" : event.kind === "log" ? (event.level ?? "log") : "stderr"), " ",
    element("span", { class: "log-text" }, text(event)));
}

/** @param {HubEvent} event */
function text(event) {
  if (event.kind === "stderr") return event.line ?? "";
  if (event.kind === "server_state") return [event.state, event.reason].filter(Boolean).join(": ");
  const data = typeof event.data === "string" ? event.data : JSON.stringify(event.data ?? "");
  return event.logger ? `${event.logger}: ${data}` : data;
}
