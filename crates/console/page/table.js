// Tables whose rows stay while their content changes, so that neither the focus nor the selection of text is lost.

import { element, setText } from "./dom.js";

/**
 * @template T
 * @typedef {object} TableColumn
 * @property {string} title
 * @property {string} [hint] what the title means
 * @property {string} [name] a class of its cells
 * @property {boolean} [isHead] whether its cells name the row
 * @property {string} [label] shown before the value where there is no room for the head
 * @property {(row: T) => string} [text]
 * @property {(cell: HTMLElement, row: T) => void} [draw] draws what is no plain text; again with each change
 */

/**
 * @template T
 */
export class DataTable {
  /** The table, and what is shown in its place while it has no rows. */
  root;
  #body = element("tbody");
  #table;
  #empty;
  #columns;
  #key;
  #rowClass;
  /** @type {Map<string, HTMLTableRowElement>} */
  #rows = new Map();

  /**
   * @param {object} options
   * @param {string} options.id of the body of the table
   * @param {TableColumn<T>[]} options.columns
   * @param {(row: T) => string} options.key
   * @param {HTMLElement} options.empty
   * @param {(row: T) => string} [options.rowClass]
   */
  constructor({ id, columns, key, empty, rowClass }) {
    this.#columns = columns;
    this.#key = key;
    this.#rowClass = rowClass;
    this.#empty = empty;
    this.#body.id = id;
    const heads = columns.map(({ title, name, hint }) => element("th", { scope: "col", class: name, title: hint }, title));
    this.#table = element("table", { class: "data" }, element("thead", {}, element("tr", {}, ...heads)), this.#body);
    this.root = element("div", { class: "table-box" }, this.#table, empty);
  }

  /** @param {T[]} rows */
  draw(rows) {
    const gone = new Set(this.#rows.keys());
    let next = this.#body.firstElementChild;
    for (const row of rows) {
      const key = this.#key(row);
      const line = this.#rows.get(key) ?? this.#addRow(key);
      gone.delete(key);
      if (line === next) next = next.nextElementSibling;
      else this.#body.insertBefore(line, next);
      this.#drawRow(line, row);
    }
    for (const key of gone) {
      this.#rows.get(key)?.remove();
      this.#rows.delete(key);
    }
    this.#table.hidden = rows.length === 0;
    this.#empty.hidden = rows.length > 0;
  }

  /** @param {string} key */
  #addRow(key) {
    const cells = this.#columns.map(({ isHead, name, label }) =>
      element(isHead ? "th" : "td", { class: name, scope: isHead ? "row" : undefined, "data-label": label }));
    const line = element("tr", {}, ...cells);
    this.#rows.set(key, line);
    return line;
  }

  /**
   * @param {HTMLTableRowElement} line
   * @param {T} row
   */
  #drawRow(line, row) {
    const name = this.#rowClass?.(row) ?? "";
    if (line.className !== name) line.className = name;
    this.#columns.forEach(({ text, draw }, at) => {
      const cell = /** @type {HTMLElement} */ (line.children[at]);
      if (draw) draw(cell, row);
      else setText(cell, text?.(row) ?? "");
    });
  }
}

/**
 * Draws a button into a cell, once; the row is the one that is drawn last.
 * @param {HTMLElement} cell
 * @param {string} text
 * @param {string} title
 * @param {() => void} action
 * @param {string} [name]
 */
export function cellButton(cell, text, title, action, name = "link") {
  const known = cell.querySelector("button");
  const made = known ?? element("button", { type: "button", class: name });
  if (!known) cell.append(made);
  setText(made, text);
  if (made.title !== title) made.title = title;
  made.onclick = action;
  return made;
}

/**
 * Draws the state of a server or a client into a cell.
 * @param {HTMLElement} cell
 * @param {string} state
 */
export function stateCell(cell, state) {
  const known = cell.querySelector(".state");
  const made = known instanceof HTMLElement ? known : element("span", { class: "state" });
  if (!known) cell.append(made);
  if (made.dataset.state !== state) made.dataset.state = state;
  setText(made, state || "unknown");
}
