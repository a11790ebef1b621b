// What is shown where there is no session: how to get one.

import { byId, setText } from "./dom.js";
import { signIn } from "./session.js";

/** @param {string} reason */
export function showSignIn(reason) {
  byId("sign-in").hidden = false;
  byId("app").hidden = true;
  setText(byId("sign-in-reason"), reason);
}

export function hideSignIn() {
  byId("sign-in").hidden = true;
}

/**
 * Lets a user of the hub sign in with an access token.
 * @param {() => Promise<void>} onAccepted
 */
export function startSignIn(onAccepted) {
  byId("sign-in-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (byId("bearer"));
    const accepted = await signIn(field.value.trim());
    field.value = "";
    if (accepted) await onAccepted();
    else setText(byId("sign-in-reason"), "The hub does not accept that token.");
  });
}
