// The keyboard: every action of the page has a key, and `?` lists them.

import { byId, element } from "./dom.js";

/**
 * @typedef {object} KeyAction
 * @property {string} key
 * @property {string} text what it does
 * @property {() => void} run
 */

/** Keys of the lists, which the lists handle themselves. */
const LIST_KEYS = [["↑ ↓ or j k", "Select a row"], ["Page Up, Page Down, Home, End", "Move further"], ["Enter", "Open the selected row"]];

const FILTER_HELP = [
  ["server:git  client:cursor", "Part of a name"], ["tool:add  method:resources/read", "What was called"],
  ["status:error  status:running", "What became of it"], [">500ms  <2s", "How long it took"],
  ["\"two words\"  -server:git", "Text in the messages; all but"],
];

/**
 * @param {KeyAction[]} actions
 */
export function startKeys(actions) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
  const all = [...actions, { key: "?", text: "Show the keys", run: () => dialog.showModal() }];
  byId("help-button").addEventListener("click", () => dialog.showModal());
  byId("help-close").addEventListener("click", () => dialog.close());
  const rows = (/** @type {string[][]} */ pairs) => pairs.map(([keys, text]) =>
    element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, keys)), element("td", {}, text)));
  byId("key-list").replaceChildren(...rows([...all.map(({ key, text }) => [key === "Escape" ? "Esc" : key, text]), ...LIST_KEYS]));
  byId("filter-list").replaceChildren(...rows(FILTER_HELP));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    const typing = event.target instanceof HTMLInputElement;
    const action = all.find(({ key }) => key === event.key);
    if (!action || (typing && event.key !== "Escape")) return;
    event.preventDefault();
    action.run();
  });
}
