// The overview: the calls of the last hour, every server with its state and why, and the clients.

import { element, setText } from "./dom.js";
import { FigureHistory, callsPerMinute, rateText } from "./figures.js";
import { clock, count, duration } from "./format.js";
import { latencyPlot } from "./latency_plot.js";
import { TimePlot, sparkline } from "./plot.js";
import { registerPage } from "./registry.js";
import { routeHash } from "./route.js";
import { byUrgency } from "./server_order.js";
import { api } from "./session.js";
import { DataTable, cellButton, stateCell } from "./table.js";

/** @import { ClientState, FigureReport, ServerFigures, ServerState } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { TableColumn } from "./table.js" */

/** The clients that are shown. */
const MAX_CLIENTS = 200;

/** @implements {PageView} */
class OverviewView {
  /** How often the states and figures are read, in milliseconds. */
  interval = 5000;
  #app;
  #history = new FigureHistory();
  /** @type {Map<string, ServerFigures>} */
  #figures = new Map();
  #drawn = -1;
  #headline = element("p", { id: "headline", class: "headline" });
  #window = element("h2", {}, "Last hour");
  #plots = element("div", { class: "plots" });
  #callPlot = new TimePlot({
    title: "Calls",
    series: [
      { name: "calls", title: "calls", value: ({ calls }) => calls, isArea: true },
      { name: "errors", title: "errors", value: ({ errors }) => errors, isArea: true },
    ],
    format: (value) => value.toLocaleString("en"),
  });
  #latencyPlot = latencyPlot();
  #servers;
  #serverCount = element("span", { class: "quiet" });
  #clients;
  #clientCount = element("span", { class: "quiet" });

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.#app = app;
    this.#servers = new DataTable({
      id: "overview-servers", columns: app.isLive ? this.#serverColumns() : recordColumns(), key: ({ name }) => name,
      empty: element("p", { id: "no-servers", class: "quiet" }, "No servers. Add one with ", element("code", {}, "trunkline add"), "."),
    });
    this.#clients = new DataTable({
      id: "overview-clients", columns: this.#clientColumns(), key: ({ id }) => id, rowClass: ({ state }) => state,
      empty: element("p", { id: "no-clients", class: "quiet" }, "No clients yet."),
    });
    const seesAll = app.isLive && app.report?.sees_all === true;
    this.#plots.append(this.#callPlot.root, this.#latencyPlot.root);
    if (seesAll) root.append(element("section", { "aria-label": "Calls" }, this.#window, this.#headline, this.#plots));
    if (seesAll || !app.isLive) root.append(section("Servers", this.#serverCount, this.#servers.root));
    root.append(section("Clients", this.#clientCount, this.#clients.root,
      element("p", { class: "quiet footnote" }, "The calls and errors of clients are counted from the events in this page.")));
  }

  async refresh() {
    await this.#app.readReport();
    if (!this.#app.report?.sees_all) return;
    const { last } = this.#history;
    const report = /** @type {FigureReport} */ (await (await api(last === undefined ? "figures" : `figures?after=${last}`)).json());
    this.#history.take(report);
    this.#figures = new Map(report.servers.map((server) => [server.name, server]));
    this.#drawn = -1;
  }

  draw() {
    const { store } = this.#app;
    if (this.#drawn === store.version) return;
    this.#drawn = store.version;
    this.#drawHeadline();
    this.#callPlot.draw(this.#history);
    this.#latencyPlot.draw(this.#history);
    const servers = [...store.servers.values()].sort(byUrgency);
    const ready = servers.filter(({ state }) => state === "ready").length;
    setText(this.#serverCount, servers.length === 0 ? "" : `${ready} of ${servers.length} ready`);
    this.#servers.draw(servers);
    const clients = [...store.clients.values()].sort((a, b) => Number(a.state === "gone") - Number(b.state === "gone") || b.since - a.since);
    const connected = clients.filter(({ state }) => state === "connected").length;
    setText(this.#clientCount, clients.length === 0 ? "" : count(connected, "connected", "connected"));
    this.#clients.draw(clients.slice(0, MAX_CLIENTS));
  }

  #drawHeadline() {
    const { recent } = this.#history;
    const running = [...this.#app.store.servers.values()].reduce((sum, server) => sum + server.running, 0);
    const parts = [
      `${rateText(callsPerMinute(recent))} calls a minute`, percentText(recent.errors, recent.calls),
      `p50 ${duration(recent.p50_micros)}`, `p95 ${duration(recent.p95_micros)}`, `p99 ${duration(recent.p99_micros)}`,
      ...(running > 0 ? [count(running, "call runs", "calls run")] : []),
    ];
    const { minutes } = this.#history;
    setText(this.#window, minutes < 60 ? `Last ${minutes} minutes` : "Last hour");
    setText(this.#headline, recent.calls === 0 ? "No calls in the last five minutes." : `Last five minutes: ${parts.join(" · ")}`);
  }

  /** @returns {TableColumn<ServerState>[]} */
  #serverColumns() {
    const recent = (/** @type {ServerState} */ { name }) => this.#figures.get(name)?.recent;
    const time = (/** @type {"p50_micros" | "p95_micros" | "p99_micros"} */ key) => (/** @type {ServerState} */ server) => {
      const found = recent(server);
      return found?.calls ? duration(found[key]) : "";
    };
    return [
      { title: "Server", isHead: true, draw: (cell, { name }) => cellButton(cell, name, `Show ${name}`, () => this.#app.router.go("servers", [name])) },
      { title: "State", draw: (cell, { state }) => stateCell(cell, state) },
      { title: "Revision", name: "mono", label: "revision", text: ({ revision }) => revision },
      { title: "Transport", label: "transport", text: ({ transport }) => transport },
      { title: "Calls/min", hint: "Of the last five minutes", name: "number", label: "calls/min", text: (server) => rateText(callsPerMinute(recent(server))) },
      { title: "p50", hint: "Half of the calls of the last five minutes took no longer", name: "number", label: "p50", text: time("p50_micros") },
      { title: "p95", hint: "95 of 100 calls of the last five minutes took no longer", name: "number", label: "p95", text: time("p95_micros") },
      { title: "p99", hint: "99 of 100 calls of the last five minutes took no longer", name: "number", label: "p99", text: time("p99_micros") },
      { title: "Errors", hint: "Since the hub started", name: "number errors", label: "errors", draw: (cell, { name }) => errorCell(cell, this.#figures.get(name)?.errors ?? 0) },
      { title: "Last hour", name: "spark-cell", draw: (cell, { name }) => this.#spark(cell, name) },
      { title: "Starts", hint: "How often it was connected to", name: "number", label: "starts", text: ({ starts }) => String(starts) },
      { title: "Why", name: "reason", text: why },
    ];
  }

  /**
   * @param {HTMLElement} cell
   * @param {string} name
   */
  #spark(cell, name) {
    const figures = this.#figures.get(name);
    sparkline(cell, figures?.minutes ?? [], `${count(figures?.calls ?? 0, "call")} since the hub started`);
  }

  /** @returns {TableColumn<ClientState>[]} */
  #clientColumns() {
    const showCalls = (/** @type {string} */ name) => {
      location.hash = routeHash("calls", [], { filter: `client:${/\s/.test(name) ? `"${name}"` : name}` });
    };
    return [
      { title: "Client", isHead: true, draw: (cell, { name }) => cellButton(cell, name, `Show the calls of ${name}`, () => showCalls(name)) },
      { title: "Version", name: "mono", text: ({ version }) => version },
      { title: "State", draw: (cell, { state }) => stateCell(cell, state) },
      { title: "Revision", name: "mono", label: "revision", text: ({ revision }) => revision },
      { title: "Transport", label: "transport", text: ({ transport }) => transport },
      { title: "User", label: "user", text: ({ principal }) => principal },
      { title: "Calls", name: "number", label: "calls", text: ({ calls }) => String(calls) },
      { title: "Errors", name: "number errors", label: "errors", draw: (cell, { errors }) => errorCell(cell, errors) },
      { title: "Since", name: "mono", label: "since", text: ({ since }) => clock(since) },
    ];
  }
}

/** The columns of a record file, which has no figures of the hub. @returns {TableColumn<ServerState>[]} */
function recordColumns() {
  return [
    { title: "Server", isHead: true, text: ({ name }) => name },
    { title: "State", draw: (cell, { state }) => stateCell(cell, state) },
    { title: "Revision", name: "mono", label: "revision", text: ({ revision }) => revision },
    { title: "Transport", label: "transport", text: ({ transport }) => transport },
    { title: "Calls", name: "number", label: "calls", text: ({ calls }) => String(calls) },
    { title: "Errors", name: "number errors", label: "errors", draw: (cell, { errors }) => errorCell(cell, errors) },
    { title: "Starts", name: "number", label: "starts", text: ({ starts }) => String(starts) },
    { title: "Why", name: "reason", text: why },
  ];
}

/**
 * Why a server is not available, or why it last failed.
 * @param {ServerState} server
 */
function why(server) {
  const retry = server.retryInMs > 0 ? ` (next attempt in ${Math.ceil(server.retryInMs / 1000)} s)` : "";
  if (server.reason) return server.reason + retry;
  return server.lastFailure ? `failed at ${clock(server.lastFailure.time).slice(0, 8)}: ${server.lastFailure.reason}` : "";
}

/**
 * @param {HTMLElement} cell
 * @param {number} errors
 */
function errorCell(cell, errors) {
  setText(cell, String(errors));
  cell.classList.toggle("bad", errors > 0);
}

/**
 * @param {number} errors
 * @param {number} calls
 */
function percentText(errors, calls) {
  if (errors === 0) return "no errors";
  const percent = (errors * 100) / Math.max(calls, 1);
  return `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} % errors`;
}

/**
 * @param {string} title
 * @param {HTMLElement | undefined} counter
 * @param {...HTMLElement} content
 */
function section(title, counter, ...content) {
  return element("section", { "aria-label": title }, element("h2", {}, `${title} `, counter), ...content);
}

registerPage({ id: "overview", title: "Overview", create: (app, root) => new OverviewView(app, root) });
