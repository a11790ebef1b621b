// The overview: every server with its state and why, and the clients.

import { byId, element } from "./dom.js";
import { clock, count } from "./format.js";

/** @import { ClientState, ServerState } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

/** States in which a server needs a look, first in the list. */
const ORDER = ["failed", "needs-auth", "connecting", "disconnected", "ready", "pending", "disabled"];

/**
 * Draws both tables.
 * @param {Store} store
 * @param {(filter: string) => void} showCalls
 */
export function drawOverview(store, showCalls) {
  const servers = [...store.servers.values()].sort(
    (a, b) => order(a.state) - order(b.state) || a.name.localeCompare(b.name));
  const ready = servers.filter(({ state }) => state === "ready").length;
  byId("servers-count").textContent = servers.length === 0 ? "" : `${ready} of ${servers.length} ready`;
  byId("servers").replaceChildren(...servers.map((server) => serverRow(server, showCalls)));
  byId("no-servers").hidden = servers.length > 0;
  const clients = [...store.clients.values()].sort((a, b) => Number(a.state === "gone") - Number(b.state === "gone") || b.since - a.since);
  byId("clients-count").textContent = clients.length === 0 ? "" : count(clients.filter(({ state }) => state === "connected").length, "connected", "connected");
  byId("clients").replaceChildren(...clients.slice(0, 200).map((client) => clientRow(client, showCalls)));
  byId("no-clients").hidden = clients.length > 0;
}

/** @param {string} state */
function order(state) {
  const at = ORDER.indexOf(state);
  return at < 0 ? ORDER.length : at;
}

/**
 * @param {string} text
 * @param {string} [name]
 * @param {string} [label]
 */
function cell(text, name, label) {
  return element("td", { class: name, "data-label": label }, text);
}

/**
 * A name that leads to its calls.
 * @param {string} text
 * @param {string} field
 * @param {(filter: string) => void} showCalls
 */
function nameCell(text, field, showCalls) {
  const link = element("button", { type: "button", class: "link", title: `Show the calls of ${text}` }, text);
  link.addEventListener("click", () => showCalls(`${field}:${/\s/.test(text) ? `"${text}"` : text}`));
  return element("th", { scope: "row" }, link);
}

/**
 * @param {ServerState} server
 * @param {(filter: string) => void} showCalls
 */
function serverRow(server, showCalls) {
  const state = element("td", {}, element("span", { class: "state", "data-state": server.state }, server.state || "unknown"));
  return element("tr", {}, nameCell(server.name, "server", showCalls), state,
    cell(server.revision, "mono", "revision"), cell(server.transport, undefined, "transport"),
    cell(server.tools === undefined ? "" : String(server.tools), "number", "tools"),
    cell(String(server.calls), "number", "calls"), cell(server.errors ? String(server.errors) : "0", server.errors ? "number bad" : "number", "errors"),
    cell(String(server.starts), "number", "starts"), cell(server.reason, "reason"));
}

/**
 * @param {ClientState} client
 * @param {(filter: string) => void} showCalls
 */
function clientRow(client, showCalls) {
  const { state } = client;
  return element("tr", { class: state }, nameCell(client.name, "client", showCalls),
    cell(client.version, "mono"), element("td", {}, element("span", { class: "state", "data-state": state }, state)),
    cell(client.revision, "mono", "revision"), cell(client.transport, undefined, "transport"), cell(client.principal, undefined, "user"),
    cell(String(client.calls), "number", "calls"), cell(String(client.errors), client.errors ? "number bad" : "number", "errors"), cell(clock(client.since), "mono", "since"));
}
