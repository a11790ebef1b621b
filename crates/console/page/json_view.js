// A message as lines of JSON, with a sign beside each member that the hub changed.

import { memberPath } from "./diff.js";
import { element } from "./dom.js";

/** @import { Json } from "./types.d.ts" */
/** @import { MemberChange } from "./diff.js" */

/** The lines that are drawn at first, and the characters of one string. */
const FIRST_LINES = 80;
const MAX_STRING = 2000;

const SIGNS = { added: "+", dropped: "−", changed: "~", moved: "→" };

/**
 * @typedef {{depth: number, text: string, kind: string, key: string, path: string, change: MemberChange | undefined}} JsonLine
 */

/**
 * Draws a value; of a long one the rest is behind a button.
 * @param {Json} value
 * @param {Map<string, MemberChange>} [changes]
 * @returns {HTMLElement}
 */
export function jsonView(value, changes = new Map()) {
  /** @type {JsonLine[]} */
  const lines = [];
  write(value, "", "", 0, "", changes, undefined, lines);
  const view = element("div", { class: "json" });
  view.append(...lines.slice(0, FIRST_LINES).map(drawLine));
  if (lines.length > FIRST_LINES) {
    const rest = lines.slice(FIRST_LINES);
    const more = element("button", { type: "button", class: "more" }, `Show ${rest.length.toLocaleString("en")} more lines`);
    more.addEventListener("click", () => more.replaceWith(...rest.slice(0, 20_000).map(drawLine)));
    view.append(more);
  }
  return view;
}

/**
 * @param {Json} value
 * @param {string} key
 * @param {string} path
 * @param {number} depth
 * @param {string} end
 * @param {Map<string, MemberChange>} changes
 * @param {MemberChange | undefined} inherited
 * @param {JsonLine[]} lines
 */
function write(value, key, path, depth, end, changes, inherited, lines) {
  const change = changes.get(path) ?? inherited;
  const push = (/** @type {string} */ text, /** @type {string} */ kind, /** @type {string} */ name) =>
    lines.push({ depth, text, kind, key: name, path, change });
  if (typeof value !== "object" || value === null) {
    push(scalar(value) + end, value === null ? "null" : typeof value, key);
    return;
  }
  const entries = Array.isArray(value)
    ? value.map((item, at) => /** @type {[string | number, Json]} */ ([at, item]))
    : Object.entries(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) {
    push(open + close + end, "mark", key);
    return;
  }
  push(open, "mark", key);
  entries.forEach(([name, item], at) => {
    const comma = at + 1 < entries.length ? "," : "";
    write(item, typeof name === "number" ? "" : name, memberPath(path, name), depth + 1, comma, changes, change, lines);
  });
  push(close + end, "mark", "");
}

/** @param {string | number | boolean | null} value */
function scalar(value) {
  if (typeof value === "string" && value.length > MAX_STRING) {
    return `${JSON.stringify(value.slice(0, MAX_STRING))} … ${(value.length - MAX_STRING).toLocaleString("en")} more characters`;
  }
  return JSON.stringify(value);
}

/** @param {JsonLine} line */
function drawLine(line) {
  const { change } = line;
  const drawn = element("div", { class: `line${change ? ` ${change.mark}` : ""}`, "data-depth": Math.min(line.depth, 12) });
  drawn.append(element("span", { class: "sign", "aria-hidden": change ? undefined : "true" }, change ? SIGNS[change.mark] : " "));
  // Indented by text, as in a file: a copied selection keeps it.
  const text = element("span", { class: "code" }, "  ".repeat(line.depth));
  if (line.key !== "") text.append(element("span", { class: "key" }, JSON.stringify(line.key)), ": ");
  text.append(element("span", { class: line.kind }, line.text));
  drawn.append(text);
  if (change) drawn.title = changeText(change);
  return drawn;
}

/** @param {MemberChange} change */
function changeText(change) {
  const other = change.other.slice(0, 300);
  switch (change.mark) {
    case "added": return "added by the hub";
    case "dropped": return "not passed on";
    case "moved": return `moved: ${other} on the other wire`;
    case "changed": return `changed: ${other} on the other wire`;
  }
}
