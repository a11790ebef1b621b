// The list of what has no answer: notifications, logs, standard error, states. One that belongs to a call leads to it.

import { setText } from "./dom.js";
import { clock, parseTime } from "./format.js";
import { VirtualGrid } from "./grid.js";

/** @import { HubEvent, StoredEvent } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

export class NoteList {
  grid;
  text = "";
  /** @type {StoredEvent[]} */
  #shown = [];
  #store;

  /**
   * @param {Store} store
   * @param {(event: HubEvent) => void} open
   * @param {() => boolean} isOpen whether a call is opened
   */
  constructor(store, open, isOpen) {
    this.#store = store;
    this.grid = new VirtualGrid("note-grid", 5, {
      length: () => this.#shown.length,
      row: (at) => this.#shown[this.#shown.length - 1 - at],
      id: ({ event }) => String(event.seq),
      version: () => 0,
      draw: (stored, cells, line) => this.#draw(stored.event, cells, line),
      open: ({ event }) => open(event),
      isOpen,
    });
  }

  get length() {
    return this.#shown.length;
  }

  update() {
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean)
      .map((word) => word.replace(/^(server|client):/, "").replaceAll('"', ""));
    const before = this.#shown.length;
    this.#shown = this.#store.notes.filter(({ line }) => {
      const lower = line.toLowerCase();
      return words.every((word) => lower.includes(word));
    });
    this.grid.shift(this.#shown.length - before);
    this.grid.draw();
  }

  /**
   * @param {HubEvent} event
   * @param {HTMLElement[]} cells
   * @param {HTMLElement} line
   */
  #draw(event, cells, line) {
    line.dataset.level = level(event);
    const call = event.call === undefined ? undefined : this.#store.calls.get(event.call);
    const from = event.server ?? (event.client ? this.#store.clientName(event.client) : call?.client ?? "");
    const texts = [clock(parseTime(event.time)), from, title(event), summary(event), call ? `${call.name || call.method} ›` : ""];
    const classes = ["time", "client", "server", "name", "jump"];
    cells.forEach((cell, at) => {
      setText(cell, texts[at] ?? "");
      cell.className = classes[at] ?? "";
    });
  }
}

/** @param {HubEvent} event */
function level(event) {
  if (event.kind === "dropped") return "warning";
  if (event.kind === "server_state") return event.state === "failed" ? "error" : "";
  return event.kind === "log" ? (event.level ?? "") : "";
}

/** @param {HubEvent} event */
function title(event) {
  switch (event.kind) {
    case "message": return String(event.message?.method ?? "").replace("notifications/", "");
    case "log": return `log ${event.level ?? ""}`;
    case "server_state": return "state";
    case "client_connected": return "connected";
    case "client_gone": return "gone";
    default: return event.kind;
  }
}

/** @param {HubEvent} event */
function summary(event) {
  switch (event.kind) {
    case "message": return JSON.stringify(event.message?.params ?? {}).slice(0, 400);
    case "log": return text(event.data).slice(0, 400);
    case "stderr": return (event.line ?? "").slice(0, 400);
    case "server_state": return [event.state, event.reason].filter(Boolean).join(": ");
    case "dropped": return `${event.count ?? 0} events did not fit into the buffer`;
    default: return [event.name, event.version, event.revision, event.principal].filter(Boolean).join(" · ");
  }
}

/** @param {unknown} data */
function text(data) {
  return typeof data === "string" ? data : JSON.stringify(data ?? "");
}
