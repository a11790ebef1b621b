// The order of servers: those that need a look first.

/** @import { ServerState } from "./types.d.ts" */

const ORDER = ["failed", "needs-auth", "connecting", "disconnected", "ready", "pending", "disabled"];

/**
 * @param {ServerState} a
 * @param {ServerState} b
 */
export function byUrgency(a, b) {
  return order(a.state) - order(b.state) || a.name.localeCompare(b.name);
}

/** @param {string} state */
function order(state) {
  const at = ORDER.indexOf(state);
  // What the hub leaves out has a state of its own, and needs a look too.
  return at < 0 ? 0 : at;
}
