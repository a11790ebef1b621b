// The rows of the calls page: the calls that match the filter, the newest first.

import { setText } from "./dom.js";
import { parseFilter } from "./filter.js";
import { clock, duration, outcomeText, size } from "./format.js";
import { VirtualGrid } from "./grid.js";

/** @import { Call } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

export class CallList {
  filter = parseFilter("");
  paused = false;
  /** Calls that came while the list was paused. */
  waiting = 0;
  grid;
  /** The calls that match, the oldest first. @type {Call[]} */
  #shown = [];
  #store;

  /**
   * @param {Store} store
   * @param {(call: Call) => void} open
   * @param {() => boolean} isOpen whether a call is opened
   */
  constructor(store, open, isOpen) {
    this.#store = store;
    this.grid = new VirtualGrid("call-grid", 7, {
      length: () => this.#shown.length,
      row: (at) => this.#shown[this.#shown.length - 1 - at],
      id: (call) => call.id,
      version: (call) => call.version,
      draw: drawCall,
      open,
      isOpen,
    });
  }

  get length() {
    return this.#shown.length;
  }

  /** @param {string} text */
  setFilter(text) {
    this.filter = parseFilter(text);
    this.rebuild();
  }

  /** Matches every call again, as after a new filter or a pause. */
  rebuild() {
    this.#shown = this.#store.ordered.filter((call) => this.filter.matches(call));
    this.#store.changed.clear();
    this.#store.removed = [];
    this.waiting = 0;
    this.grid.draw();
  }

  /** Takes what changed since the last frame. */
  update() {
    if (this.paused) {
      this.waiting = this.#store.changed.size;
      return;
    }
    if (this.#store.removed.length > 0) return this.rebuild();
    if (this.#store.changed.size === 0) return;
    let added = 0;
    for (const call of this.#store.changed) {
      const at = this.#find(call);
      const isShown = this.#shown[at] === call;
      const matches = this.filter.matches(call);
      if (matches && !isShown) {
        this.#shown.splice(at, 0, call);
        added += 1;
      } else if (!matches && isShown) {
        this.#shown.splice(at, 1);
        added -= 1;
      }
    }
    this.#store.changed.clear();
    this.grid.shift(added);
    this.grid.draw();
  }

  /**
   * The place of a call among those shown, or where it belongs.
   * @param {Call} call
   */
  #find(call) {
    let [low, high] = [0, this.#shown.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#shown[middle]?.seq ?? 0) < call.seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * @param {Call} call
 * @param {HTMLElement[]} cells
 * @param {HTMLElement} line
 */
function drawCall(call, cells, line) {
  line.dataset.outcome = call.outcome;
  const isCall = call.method === "tools/call";
  const texts = [
    clock(call.started), call.client, isCall ? call.name : [call.method, call.name].filter(Boolean).join("  "), call.server,
    outcomeText(call.outcome), duration(call.micros), size(call.bytesOut || undefined),
  ];
  const classes = ["time", "client", "name", "server", "outcome", "duration", "size"];
  cells.forEach((cell, at) => {
    setText(cell, texts[at] ?? "");
    cell.className = classes[at] ?? "";
  });
  const name = cells[2];
  if (name) name.title = call.error || `${call.method} ${call.name}`;
}
