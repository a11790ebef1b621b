// The keyboard: every action has a key, and `?` lists those of the page that is shown.

import { byId, element } from "./dom.js";

/**
 * @typedef {object} KeyAction
 * @property {string} key
 * @property {string} text what it does
 * @property {() => void} run
 */

/**
 * A section of the list of keys.
 * @typedef {object} HelpSection
 * @property {string} title
 * @property {ReadonlyArray<readonly [string, string]>} rows
 */

/**
 * @param {() => KeyAction[]} actions what the keys do at the moment
 * @param {() => HelpSection[]} sections
 */
export function startKeys(actions, sections) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
  const open = () => {
    drawHelp([...actions(), { key: "?", text: "Show the keys" }], sections());
    dialog.showModal();
  };
  byId("help-button").addEventListener("click", open);
  byId("help-close").addEventListener("click", () => dialog.close());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isDialogOpen()) return;
    if (isTyping(event.target) && event.key !== "Escape") return;
    const run = event.key === "?" ? open : actions().find(({ key }) => key === event.key)?.run;
    if (!run) return;
    event.preventDefault();
    run();
  });
}

/** A dialog has keys of its own. */
function isDialogOpen() {
  return document.querySelector("dialog[open]") !== null;
}

/**
 * Whether keys are text for the element that has the focus.
 * @param {EventTarget | null} target
 */
function isTyping(target) {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/**
 * @param {Array<{key: string, text: string}>} actions
 * @param {HelpSection[]} sections
 */
function drawHelp(actions, sections) {
  const keys = actions.map(({ key, text }) => /** @type {const} */ ([key === "Escape" ? "Esc" : key, text]));
  const all = [{ title: "Keys", rows: keys }, ...sections];
  byId("help-sections").replaceChildren(...all.flatMap(({ title, rows }, at) => [
    element("h2", { id: at === 0 ? "help-title" : undefined }, title),
    element("table", {}, element("tbody", {}, ...rows.map(([name, text]) =>
      element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, name)), element("td", {}, text))))),
  ]));
}
