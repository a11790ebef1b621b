// The cost page: what the tools of each server take of a model's context, as an estimate that the page explains.

import { element, setText } from "./dom.js";
import { count, size } from "./format.js";
import { registerPage } from "./registry.js";
import { api } from "./session.js";
import { DataTable } from "./table.js";

/** @import { ConsoleItem, ServerCost } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { TableColumn } from "./table.js" */

/** The bytes of one token. */
const BYTES_PER_TOKEN = 4;

/** The tools that are shown. */
const MAX_TOOLS = 40;

const EXPLANATION = `A token is taken to be ${BYTES_PER_TOKEN} bytes. That is about right for English text and JSON; other scripts need more tokens, and each model counts in its own way. A definition is the name, the description and the schema of the arguments, which most clients give to the model with every request, whether or not the tool is called. A result is the JSON that the server returned, and counts once for each call.`;

/**
 * @typedef {object} ToolCost
 * @property {string} server
 * @property {ConsoleItem} tool
 */

/** @implements {PageView} */
class CostView {
  interval = 10_000;
  /** @type {ServerCost[]} */
  #servers = [];
  #total = element("p", { id: "cost-total", class: "headline" });
  #byServer;
  #byTool;
  #byResult;

  /**
   * @param {ConsoleApp} _app
   * @param {HTMLElement} root
   */
  constructor(_app, root) {
    this.#byServer = new DataTable({ id: "cost-servers", columns: serverColumns(() => this.#servers), key: ({ name }) => name, empty: nothing("No tools are offered.") });
    this.#byTool = new DataTable({ id: "cost-tools", columns: toolColumns(() => this.#tools()), key: ({ tool }) => tool.name, empty: nothing("No tools are offered.") });
    this.#byResult = new DataTable({ id: "cost-results", columns: resultColumns(() => this.#servers), key: ({ name }) => name, empty: nothing("No calls since the hub started.") });
    root.append(
      element("section", { "aria-label": "Estimate" }, this.#total, element("p", { class: "quiet prose" }, EXPLANATION)),
      element("section", { "aria-label": "Definitions by server" }, element("h2", {}, "Definitions by server"), this.#byServer.root),
      element("section", { "aria-label": "Longest definitions" }, element("h2", {}, "Longest definitions"), this.#byTool.root),
      element("section", { "aria-label": "Results by server" }, element("h2", {}, "Results by server, since the hub started"), this.#byResult.root));
  }

  async refresh() {
    this.#servers = /** @type {{servers: ServerCost[]}} */ (await (await api("costs")).json()).servers;
  }

  draw() {
    const offering = this.#servers.filter(({ tools }) => tools > 0);
    const tools = offering.reduce((sum, server) => sum + server.tools, 0);
    const bytes = offering.reduce((sum, server) => sum + server.definition_bytes, 0);
    setText(this.#total, `About ${tokens(bytes)} for the definitions of ${count(tools, "tool")} of ${count(offering.length, "server")}.`);
    this.#byServer.draw(offering.sort((a, b) => b.definition_bytes - a.definition_bytes));
    this.#byTool.draw(this.#tools());
    this.#byResult.draw(this.#servers.filter(({ calls }) => calls > 0).sort((a, b) => b.result_bytes - a.result_bytes));
  }

  /** The tools with the longest definitions, of all servers. @returns {ToolCost[]} */
  #tools() {
    const all = this.#servers.flatMap(({ name, largest }) => largest.map((tool) => ({ server: name, tool })));
    return all.sort((a, b) => b.tool.bytes - a.tool.bytes).slice(0, MAX_TOOLS);
  }
}

/**
 * @param {() => ServerCost[]} all
 * @returns {TableColumn<ServerCost>[]}
 */
function serverColumns(all) {
  const most = () => Math.max(1, ...all().map(({ definition_bytes: bytes }) => bytes));
  return [
    { title: "Server", isHead: true, text: ({ name }) => name },
    { title: "Tools", name: "number", label: "tools", text: ({ tools }) => tools.toLocaleString("en") },
    { title: "Tokens", hint: "Estimated", name: "number", label: "tokens", text: ({ definition_bytes: bytes }) => tokenCount(bytes) },
    { title: "Bytes", name: "number quiet", label: "bytes", text: ({ definition_bytes: bytes }) => size(bytes) },
    { title: "Share", hint: "Of the largest", name: "bar-cell", draw: (cell, { definition_bytes: bytes }) => bar(cell, bytes / most()) },
  ];
}

/**
 * @param {() => ToolCost[]} all
 * @returns {TableColumn<ToolCost>[]}
 */
function toolColumns(all) {
  const most = () => Math.max(1, ...all().map(({ tool }) => tool.bytes));
  return [
    { title: "Tool", isHead: true, text: ({ tool }) => tool.name },
    { title: "Server", label: "server", text: ({ server }) => server },
    { title: "Tokens", hint: "Estimated", name: "number", label: "tokens", text: ({ tool }) => tokenCount(tool.bytes) },
    { title: "Bytes", name: "number quiet", label: "bytes", text: ({ tool }) => size(tool.bytes) },
    { title: "Share", hint: "Of the largest", name: "bar-cell", draw: (cell, { tool }) => bar(cell, tool.bytes / most()) },
  ];
}

/**
 * @param {() => ServerCost[]} all
 * @returns {TableColumn<ServerCost>[]}
 */
function resultColumns(all) {
  const most = () => Math.max(1, ...all().map(({ result_bytes: bytes }) => bytes));
  return [
    { title: "Server", isHead: true, text: ({ name }) => name },
    { title: "Calls", name: "number", label: "calls", text: ({ calls }) => calls.toLocaleString("en") },
    { title: "Tokens", hint: "Estimated, of all results together", name: "number", label: "tokens", text: ({ result_bytes: bytes }) => tokenCount(bytes) },
    { title: "Each", hint: "Estimated, on average", name: "number", label: "each", text: ({ result_bytes: bytes, calls }) => tokenCount(bytes / calls) },
    { title: "Share", hint: "Of the largest", name: "bar-cell", draw: (cell, { result_bytes: bytes }) => bar(cell, bytes / most()) },
  ];
}

/** @param {number} bytes */
function tokens(bytes) {
  return count(Math.round(bytes / BYTES_PER_TOKEN), "token");
}

/** @param {number} bytes */
function tokenCount(bytes) {
  return Math.round(bytes / BYTES_PER_TOKEN).toLocaleString("en");
}

/** @param {string} text */
function nothing(text) {
  return element("p", { class: "quiet" }, text);
}

/**
 * Draws a bar of a part of the width.
 * @param {HTMLElement} cell
 * @param {number} part from 0 to 1
 */
function bar(cell, part) {
  const known = cell.firstElementChild;
  const made = known instanceof HTMLElement ? known : element("span", { class: "bar" });
  if (!known) cell.append(made);
  const width = `${(part * 100).toFixed(1)}%`;
  if (made.style.width !== width) made.style.width = width;
}

registerPage({
  id: "cost", title: "Cost", isOffered: (report) => report?.sees_all === true,
  create: (app, root) => new CostView(app, root),
});
