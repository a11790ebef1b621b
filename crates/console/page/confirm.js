// A question before something that cannot be undone.

import { element } from "./dom.js";

/**
 * Lets the user confirm an action; Escape and closing mean no.
 * @param {string} text
 * @param {string} action the label of the button that confirms
 * @returns {Promise<boolean>}
 */
export function confirmed(text, action) {
  const yes = element("button", { type: "button", id: "confirm-yes" }, action);
  const no = element("button", { type: "button", id: "confirm-no", class: "ghost" }, "Cancel");
  const dialog = element("dialog", { class: "confirm", "aria-labelledby": "confirm-text" },
    element("p", { id: "confirm-text" }, text), element("div", { class: "dialog-actions" }, no, yes));
  document.body.append(dialog);
  return new Promise((resolve) => {
    yes.addEventListener("click", () => dialog.close("yes"));
    no.addEventListener("click", () => dialog.close(""));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
    no.focus();
  });
}
