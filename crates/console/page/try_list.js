// The list of what can be tried, by server, with a filter. One stop for the Tab key; the arrows move within it.

import { element, setText } from "./dom.js";
import { count } from "./format.js";

/** @import { TryItem } from "./types.d.ts" */

/** The items that are drawn; the filter finds the others. */
const MAX_SHOWN = 2000;

/**
 * The name without that of its server, below which it is listed.
 * @param {TryItem} item
 */
function shortName({ title, server }) {
  return server === "" ? title : title.slice(server.length).replace(/^[^a-zA-Z0-9]+/, "") || title;
}

export class TryList {
  element;
  #list = element("div", { class: "try-items", role: "listbox", tabindex: 0, "aria-label": "What can be tried" });
  #filter = element("input", { type: "search", id: "try-filter", placeholder: "Filter", "aria-label": "Filter the list", autocomplete: "off", spellcheck: "false" });
  #status = element("p", { class: "quiet try-status", role: "status" });
  /** @type {TryItem[]} */
  #items = [];
  /** @type {TryItem[]} */
  #shown = [];
  /** @type {Map<TryItem, HTMLElement>} */
  #options = new Map();
  #selected = "";
  #open;

  /** @param {(item: TryItem, isChosen: boolean) => void} open is given whether the item was chosen, and not only passed on the way */
  constructor(open) {
    this.#open = open;
    this.#filter.addEventListener("input", () => this.#draw());
    this.#filter.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      if (event.key === "Enter" && this.#shown[0]) return this.#open(this.#shown[0], true);
      this.#list.focus();
    });
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.element = element("div", { class: "try-list" }, this.#filter, this.#list, this.#status);
  }

  /** @param {TryItem[]} items @param {string} problem @param {boolean} isLoaded */
  show(items, problem, isLoaded) {
    this.#items = items;
    this.#draw();
    if (problem) setText(this.#status, problem);
    else if (!isLoaded) setText(this.#status, "Loading…");
    else if (items.length === 0) setText(this.#status, "No server has any.");
  }

  /** Marks the item that is shown. @param {string} id */
  select(id) {
    this.#selected = id;
    for (const [item, option] of this.#options) option.setAttribute("aria-selected", String(item.id === id));
    const option = [...this.#options].find(([item]) => item.id === id)?.[1];
    if (option) this.#list.setAttribute("aria-activedescendant", option.id);
    else this.#list.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  focus() {
    this.#list.focus({ preventScroll: true });
  }

  focusFilter() {
    this.#filter.select();
  }

  #draw() {
    const words = this.#filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = this.#items.filter((item) => {
      const text = `${item.title} ${item.server} ${item.description} ${item.id}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    this.#shown = matching.slice(0, MAX_SHOWN);
    this.#options.clear();
    /** @type {Map<string, HTMLElement>} */
    const groups = new Map();
    this.#shown.forEach((item, at) => {
      const option = element("div", { id: `try-option-${at}`, role: "option", class: "try-option", "aria-selected": "false", title: `${item.title}${item.description ? `: ${item.description.slice(0, 500)}` : ""}` },
        element("bdi", { class: "try-name" }, shortName(item)));
      option.addEventListener("click", () => this.#open(item, true));
      this.#options.set(item, option);
      this.#group(groups, item.server).append(option);
    });
    this.#list.replaceChildren(...groups.values());
    setText(this.#status, matching.length > this.#shown.length ? `${count(matching.length - this.#shown.length, "more")}: use the filter`
      : words.length > 0 && matching.length === 0 ? "Nothing matches." : "");
    this.select(this.#selected);
  }

  /**
   * @param {Map<string, HTMLElement>} groups
   * @param {string} server
   */
  #group(groups, server) {
    const known = groups.get(server);
    if (known) return known;
    const name = server || "All servers";
    const id = `try-group-${groups.size}`;
    const made = element("div", { class: "try-group", role: "group", "aria-labelledby": id },
      element("div", { class: "try-server", id, role: "presentation" }, name));
    groups.set(server, made);
    return made;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const steps = /** @type {Readonly<Record<string, number>>} */ ({ ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -Infinity, End: Infinity });
    const step = steps[event.key];
    if (step === undefined && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    const at = this.#shown.findIndex((item) => item.id === this.#selected);
    const next = this.#shown[Math.min(Math.max(at + (step ?? 0), 0), this.#shown.length - 1)];
    if (next) this.#open(next, event.key === "Enter");
  }
}
