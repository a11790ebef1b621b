// A list of any length of which only the rows in sight exist.

import { byId, element } from "./dom.js";

/** Rows that are drawn above and below those in sight. */
const OVERSCAN = 8;

/** The keys of a list. @type {ReadonlyArray<readonly [string, string]>} */
export const LIST_HELP = [
  ["↑ ↓ or j k", "Select a row"], ["Page Up, Page Down, Home, End", "Move further"], ["Enter", "Open the selected row"],
];

/**
 * Makes the element of a list, for `VirtualGrid`.
 * @param {string} id
 * @param {string} label
 * @param {Array<[string, string]>} columns the class and the title of each
 */
export function gridElement(id, label, columns) {
  const heads = columns.map(([name, title]) => element("span", { role: "columnheader", class: name }, title));
  return element("div", { id, class: `grid ${id}`, role: "grid", "aria-label": label, tabindex: 0 },
    element("div", { class: "row head", role: "row" }, ...heads),
    element("div", { class: "rows", role: "rowgroup" }));
}

/**
 * @template T
 * @typedef {object} GridSource
 * @property {() => number} length
 * @property {(at: number) => T | undefined} row
 * @property {(row: T) => string} id stays the same while the row moves
 * @property {(row: T) => number} version
 * @property {(row: T, cells: HTMLElement[], line: HTMLElement) => void} draw
 * @property {(row: T, at: number) => void} open
 * @property {() => boolean} isOpen whether a row is opened: then what is open follows the selection
 */

/**
 * @template T
 */
export class VirtualGrid {
  selected = "";
  #list;
  #rows;
  #source;
  #columns;
  /** @type {HTMLElement[]} */
  #pool = [];
  #rowHeight = 26;
  #length = 0;

  /**
   * @param {string} id of an element with a child of class `rows`
   * @param {number} columns
   * @param {GridSource<T>} source
   */
  constructor(id, columns, source) {
    this.#list = byId(id);
    this.#rows = /** @type {HTMLElement} */ (this.#list.querySelector(".rows"));
    this.#columns = columns;
    this.#source = source;
    this.#list.addEventListener("scroll", () => this.draw(), { passive: true });
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.draw()).observe(this.#list);
  }

  focus() {
    this.#list.focus({ preventScroll: true });
  }

  /**
   * Keeps what is in sight in place while rows come before it.
   * @param {number} added
   */
  shift(added) {
    if (this.#list.scrollTop > 0 && added > 0) this.#list.scrollTop += added * this.#rowHeight;
  }

  draw() {
    const length = this.#source.length();
    const rowHeight = parseFloat(getComputedStyle(this.#list).getPropertyValue("--row")) || 26;
    const head = this.#list.querySelector(".head");
    const headHeight = head instanceof HTMLElement ? head.offsetHeight : 0;
    const top = this.#list.scrollTop;
    if (length !== this.#length || rowHeight !== this.#rowHeight) {
      this.#rows.style.height = `${length * rowHeight}px`;
      this.#list.setAttribute("aria-rowcount", String(length + 1));
      this.#length = length;
      this.#rowHeight = rowHeight;
    }
    const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
    const count = Math.ceil((this.#list.clientHeight - headHeight) / rowHeight) + 2 * OVERSCAN;
    const last = Math.min(length, first + Math.max(count, 0));
    while (this.#pool.length < last - first) this.#pool.push(this.#makeRow());
    this.#pool.forEach((line, slot) => this.#drawRow(line, first + slot, first + slot < last));
    const active = this.#pool.find((line) => !line.hidden && line.dataset.id === this.selected);
    if (active) this.#list.setAttribute("aria-activedescendant", active.id);
    else this.#list.removeAttribute("aria-activedescendant");
  }

  #makeRow() {
    const line = element("div", { class: "row", role: "row", id: `${this.#list.id}-row-${this.#pool.length}` });
    for (let at = 0; at < this.#columns; at += 1) line.append(element("span", { role: "gridcell" }));
    this.#rows.append(line);
    return line;
  }

  /**
   * @param {HTMLElement} line
   * @param {number} at
   * @param {boolean} shown
   */
  #drawRow(line, at, shown) {
    const row = shown ? this.#source.row(at) : undefined;
    if (line.hidden !== (row === undefined)) line.hidden = row === undefined;
    if (row === undefined) return;
    const id = this.#source.id(row);
    const state = `${id} ${this.#source.version(row)} ${id === this.selected}`;
    const place = `translateY(${at * this.#rowHeight}px)`;
    if (line.style.transform !== place) {
      line.style.transform = place;
      line.setAttribute("aria-rowindex", String(at + 2));
      line.dataset.at = String(at);
    }
    if (line.dataset.state === state) return;
    line.dataset.state = state;
    line.dataset.id = id;
    line.setAttribute("aria-selected", String(id === this.selected));
    this.#source.draw(row, /** @type {HTMLElement[]} */ ([...line.children]), line);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const line = event.target instanceof Element ? event.target.closest(".row") : null;
    if (line instanceof HTMLElement && !line.classList.contains("head")) this.#choose(Number(line.dataset.at), true);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const page = Math.max(1, Math.floor(this.#list.clientHeight / this.#rowHeight) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") this.#choose(this.#selectedAt(), true);
    else if (step !== undefined) this.move(step);
    else return;
    event.preventDefault();
  }

  /**
   * Selects the row that is so many below the selected one.
   * @param {number} step
   */
  move(step) {
    const at = this.#selectedAt();
    this.#choose(at < 0 ? 0 : Math.min(Math.max(at + step, 0), this.#source.length() - 1), false);
  }

  #selectedAt() {
    for (let at = 0; at < this.#source.length(); at += 1) {
      const row = this.#source.row(at);
      if (row !== undefined && this.#source.id(row) === this.selected) return at;
    }
    return -1;
  }

  /**
   * @param {number} at
   * @param {boolean} opened
   */
  #choose(at, opened) {
    const row = this.#source.row(at);
    if (row === undefined) return;
    this.selected = this.#source.id(row);
    this.#reveal(at);
    this.draw();
    // A closed view waits for Enter or a click.
    if (opened || this.#source.isOpen()) this.#source.open(row, at);
  }

  /** @param {number} at */
  #reveal(at) {
    const head = this.#list.querySelector(".head");
    const headHeight = head instanceof HTMLElement ? head.offsetHeight : 0;
    const [top, height] = [at * this.#rowHeight, this.#list.clientHeight - headHeight];
    if (top < this.#list.scrollTop) this.#list.scrollTop = top;
    else if (top + this.#rowHeight > this.#list.scrollTop + height) this.#list.scrollTop = top + this.#rowHeight - height;
  }
}
