// Dark and light: the system's choice, or the user's.

import { byId } from "./dom.js";

const KEY = "trunkline-theme";
const NEXT = { system: "light", light: "dark", dark: "system" };

/** Applies the stored choice, and lets the button change it. */
export function startTheme() {
  apply(stored());
  byId("theme").addEventListener("click", cycleTheme);
}

/** Takes the next of system, light and dark. */
export function cycleTheme() {
  const next = /** @type {keyof typeof NEXT} */ (NEXT[stored()]);
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A browser without storage keeps the choice for this page only.
  }
  apply(next);
}

/** @returns {keyof typeof NEXT} */
function stored() {
  const shown = document.documentElement.dataset.theme;
  let kept = shown ?? null;
  try {
    kept = localStorage.getItem(KEY) ?? kept;
  } catch {
    // As above.
  }
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** @param {keyof typeof NEXT} theme */
function apply(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-label", `Theme: ${theme}`);
  byId("theme").title = `Theme: ${theme} (t)`;
}
