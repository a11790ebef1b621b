// The overview: every server with its state and why, and the clients.

import { byId, element } from "./dom.js";
import { clock, count } from "./format.js";
import { registerPage } from "./registry.js";

/** @import { ClientState, ServerState } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */

/** States in which a server needs a look, first in the list. */
const ORDER = ["failed", "needs-auth", "connecting", "disconnected", "ready", "pending", "disabled"];

const SERVER_COLUMNS = ["Server", "State", "Revision", "Transport", "Tools", "Calls", "Errors", "Starts", "Why"];
const CLIENT_COLUMNS = ["Client", "Version", "State", "Revision", "Transport", "User", "Calls", "Errors", "Since"];
const NUMBERS = new Set(["Tools", "Calls", "Errors", "Starts"]);

/** @implements {PageView} */
class OverviewView {
  /** How often the states of servers are read, in milliseconds. */
  interval = 10_000;
  #app;
  #drawn = -1;

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.#app = app;
    root.append(
      section("overview-servers", "Servers", SERVER_COLUMNS,
        element("p", { id: "no-servers", class: "quiet" }, "No servers. Add one with ", element("code", {}, "trunkline add"), ".")),
      section("overview-clients", "Clients", CLIENT_COLUMNS, element("p", { id: "no-clients", class: "quiet" }, "No clients yet.")),
      element("p", { class: "quiet footnote" }, "Calls and errors are counted from the events in this page."));
  }

  async refresh() {
    await this.#app.readReport();
  }

  draw() {
    const { store } = this.#app;
    if (this.#drawn === store.version) return;
    this.#drawn = store.version;
    const servers = [...store.servers.values()].sort(
      (a, b) => order(a.state) - order(b.state) || a.name.localeCompare(b.name));
    const ready = servers.filter(({ state }) => state === "ready").length;
    byId("overview-servers-count").textContent = servers.length === 0 ? "" : `${ready} of ${servers.length} ready`;
    byId("overview-servers").replaceChildren(...servers.map((server) => this.#serverRow(server)));
    byId("no-servers").hidden = servers.length > 0;
    const clients = [...store.clients.values()].sort((a, b) => Number(a.state === "gone") - Number(b.state === "gone") || b.since - a.since);
    byId("overview-clients-count").textContent = clients.length === 0 ? "" : count(clients.filter(({ state }) => state === "connected").length, "connected", "connected");
    byId("overview-clients").replaceChildren(...clients.slice(0, 200).map((client) => this.#clientRow(client)));
    byId("no-clients").hidden = clients.length > 0;
  }

  /**
   * A name that leads to its calls.
   * @param {string} text
   * @param {string} field
   */
  #nameCell(text, field) {
    const link = element("button", { type: "button", class: "link", title: `Show the calls of ${text}` }, text);
    const filter = `${field}:${/\s/.test(text) ? `"${text}"` : text}`;
    link.addEventListener("click", () => this.#app.router.go("calls", [], { filter }));
    return element("th", { scope: "row" }, link);
  }

  /** @param {ServerState} server */
  #serverRow(server) {
    const state = element("td", {}, element("span", { class: "state", "data-state": server.state }, server.state || "unknown"));
    return element("tr", {}, this.#nameCell(server.name, "server"), state,
      cell(server.revision, "mono", "revision"), cell(server.transport, undefined, "transport"),
      cell(server.tools === undefined ? "" : String(server.tools), "number", "tools"),
      cell(String(server.calls), "number", "calls"), cell(server.errors ? String(server.errors) : "0", server.errors ? "number bad" : "number", "errors"),
      cell(String(server.starts), "number", "starts"), cell(server.reason, "reason"));
  }

  /** @param {ClientState} client */
  #clientRow(client) {
    const { state } = client;
    return element("tr", { class: state }, this.#nameCell(client.name, "client"),
      cell(client.version, "mono"), element("td", {}, element("span", { class: "state", "data-state": state }, state)),
      cell(client.revision, "mono", "revision"), cell(client.transport, undefined, "transport"), cell(client.principal, undefined, "user"),
      cell(String(client.calls), "number", "calls"), cell(String(client.errors), client.errors ? "number bad" : "number", "errors"), cell(clock(client.since), "mono", "since"));
  }
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string[]} columns
 * @param {HTMLElement} empty
 */
function section(id, title, columns, empty) {
  const heads = columns.map((column) => element("th", { scope: "col", class: NUMBERS.has(column) ? "number" : undefined }, column));
  return element("section", { "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, `${title} `, element("span", { id: `${id}-count`, class: "quiet" })),
    element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", { id })), empty);
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

registerPage({ id: "overview", title: "Overview", create: (app, root) => new OverviewView(app, root) });
