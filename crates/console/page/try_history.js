// What this page has called, the newest first: each can be looked at again with its arguments, and run again.

import { button, element } from "./dom.js";
import { clock, duration, outcomeText } from "./format.js";

/** @import { TryItem } from "./types.d.ts" */
/** @import { RunRequest } from "./try_run.js" */

/** The requests that are kept. */
const MAX_ENTRIES = 50;

/**
 * @typedef {{item: TryItem, request: RunRequest, label: string, outcome: string, micros: number | undefined, time: number}} TryEntry
 */

export class TryHistory {
  element = element("section", { class: "try-history", "aria-labelledby": "try-history-title" });
  /** @type {TryEntry[]} */
  #entries = [];
  #list = element("ol", {});
  #open;
  #run;

  /**
   * @param {(entry: TryEntry) => void} open
   * @param {(entry: TryEntry) => void} run
   */
  constructor(open, run) {
    this.#open = open;
    this.#run = run;
    this.element.append(element("h2", { id: "try-history-title" }, "History"), this.#list);
    this.element.hidden = true;
  }

  /** @param {TryEntry} entry */
  add(entry) {
    this.#entries = [entry, ...this.#entries].slice(0, MAX_ENTRIES);
    this.draw();
  }

  draw() {
    this.element.hidden = this.#entries.length === 0;
    this.#list.replaceChildren(...this.#entries.map((entry) => element("li", { "data-outcome": entry.outcome },
      button(entry.label, "Show its arguments again", () => this.#open(entry), { class: "link" }),
      element("span", { class: "quiet" }, `${clock(entry.time).slice(0, 8)}  ${outcomeText(entry.outcome)}  ${duration(entry.micros)}`),
      button("↻", "Run it again", () => this.#run(entry), { class: "icon-button ghost", "aria-label": `Run ${entry.label} again` }))));
  }
}
