// One server: its state and why, what can be done to it, its calls of the last hour, its logs and what it offers.

import { confirmed } from "./confirm.js";
import { announce, button, element, setText } from "./dom.js";
import { FigureHistory } from "./figures.js";
import { count, duration, size, span } from "./format.js";
import { latencyPlot } from "./latency_plot.js";
import { ServerLog } from "./server_log.js";
import { api } from "./session.js";
import { DataTable } from "./table.js";

/** @import { ConsoleItem, FigureReport, ServerDetails } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */

const TABS = /** @type {const} */ (["logs", "tools", "prompts", "resources"]);
const TITLES = { logs: "Logs", tools: "Tools", prompts: "Prompts", resources: "Resources" };

/** The facts that take a line of their own. */
const WIDE = new Set(["Reached at", "Instructions", "Left out", "Repaired"]);

/** @typedef {typeof TABS[number]} ServerTab */

export class ServerPanel {
  root = element("section", { id: "server-panel", class: "server-panel", "aria-label": "Server" });
  #app;
  #onTab;
  #name = "";
  /** @type {ServerTab} */
  #tab = "logs";
  /** @type {ServerDetails | undefined} */
  #details;
  #history = new FigureHistory();
  /** The list that is drawn. @type {ConsoleItem[] | undefined} */
  #drawnItems;
  #isBusy = false;
  #title = element("h2", { id: "server-name" });
  #state = element("span", { class: "state" });
  #restart = button("Restart", "Close its connections and connect again", () => void this.#reconnect(), { id: "server-restart" });
  #toggle = button("Disable", "", () => void this.#switch(), { id: "server-toggle" });
  #reason = element("p", { id: "server-reason", class: "error-text" });
  #facts = element("dl", { class: "fact-list" });
  #factBox = element("div", { class: "fact-box", tabindex: 0, role: "region", "aria-label": "Facts" }, this.#facts);
  #plot = latencyPlot();
  #tabs;
  #log;
  #items;
  #itemBox;
  #more = element("p", { class: "quiet footnote" });

  /**
   * @param {ConsoleApp} app
   * @param {() => void} onTab when another part is shown
   * @param {() => void} onClose
   */
  constructor(app, onTab, onClose) {
    this.#app = app;
    this.#onTab = onTab;
    this.#log = new ServerLog(app.store);
    this.#items = new DataTable({
      id: "server-items", columns: itemColumns(), key: (/** @type {ConsoleItem} */ { name }) => name,
      empty: element("p", { class: "quiet hint" }, "It offers none."),
    });
    this.#itemBox = element("div", { class: "server-items", tabindex: 0, role: "region", "aria-label": "Items" }, this.#items.root, this.#more);
    this.#tabs = new Map(TABS.map((tab) => [tab, button(TITLES[tab], "", () => this.#choose(tab), { id: `server-tab-${tab}` })]));
    const back = button("All servers", "Back to the list (Esc)", onClose, { class: "back" });
    const calls = button("Calls", "Show its calls", () => app.router.go("calls", [], { filter: `server:${quoted(this.#name)}` }), { id: "server-calls" });
    this.root.append(
      element("div", { class: "detail-head" }, back, element("div", { class: "title" }, this.#title, this.#state),
        element("div", { class: "actions" }, ...(app.isOperator ? [this.#restart, this.#toggle] : []), calls), this.#reason),
      this.#factBox, this.#plot.root,
      element("div", { class: "segments tabs", role: "group", "aria-label": "Shown" }, ...this.#tabs.values()),
      this.#log.root, this.#itemBox);
    this.setTab("logs");
  }

  /** What follows the name of the server in the address. */
  get path() {
    return this.#tab === "logs" ? [] : [this.#tab];
  }

  /**
   * Shows another server; none with an empty name.
   * @param {string} name
   */
  open(name) {
    this.#name = name;
    this.#details = undefined;
    this.#history = new FigureHistory();
    this.#log.open(name);
    this.#drawnItems = undefined;
    this.#items.draw([]);
    this.#facts.dataset.drawn = "";
    this.#reason.hidden = true;
    this.#facts.replaceChildren();
    this.root.hidden = name === "";
    if (name !== "") void this.refresh().catch(() => undefined);
    this.#app.requestDraw();
  }

  /** @param {string} text */
  setTab(text) {
    this.#tab = TABS.find((tab) => tab === text) ?? "logs";
    for (const [tab, shown] of this.#tabs) shown.setAttribute("aria-pressed", String(tab === this.#tab));
    this.#log.root.hidden = this.#tab !== "logs";
    this.#itemBox.hidden = this.#tab === "logs";
    this.#app.requestDraw();
  }

  nextTab() {
    this.#choose(TABS[(TABS.indexOf(this.#tab) + 1) % TABS.length] ?? "logs");
  }

  async refresh() {
    const name = this.#name;
    if (name === "") return;
    const answer = await (await api(`server?name=${encodeURIComponent(name)}`)).json();
    // Another server may be open by now.
    if (name !== this.#name) return;
    this.#details = /** @type {ServerDetails} */ (answer.server);
    if (answer.figures) this.#history.take(/** @type {FigureReport} */ ({ servers: [], ...answer.figures }));
    this.#app.requestDraw();
  }

  draw() {
    if (this.#name === "") return;
    setText(this.#title, this.#name);
    const known = this.#app.store.servers.get(this.#name);
    const state = known?.state ?? this.#details?.state ?? "";
    this.#state.dataset.state = state;
    setText(this.#state, state || "unknown");
    const reason = known?.reason || this.#details?.reason || "";
    setText(this.#reason, reason);
    this.#reason.hidden = reason === "";
    const isFixed = this.#isBusy || known === undefined || known.isExcluded;
    this.#restart.disabled = isFixed || state === "disabled";
    this.#toggle.disabled = isFixed;
    setText(this.#toggle, state === "disabled" ? "Enable" : "Disable");
    this.#toggle.title = state === "disabled" ? "Expose its tools" : "Hide its tools; the connection stays open";
    this.#log.draw(this.#details?.output ?? "");
    if (!this.#details) return;
    this.#plot.root.hidden = this.#history.points.length === 0;
    this.#plot.draw(this.#history);
    this.#drawFacts(this.#details);
    this.#drawItems(this.#details);
  }

  /** @param {ServerTab} tab */
  #choose(tab) {
    this.setTab(tab);
    this.#onTab();
  }

  /** @param {ServerDetails} details */
  #drawFacts(details) {
    const { recent } = this.#history;
    const latency = recent.calls === 0 ? "" : `p50 ${duration(recent.p50_micros)}, p95 ${duration(recent.p95_micros)}, p99 ${duration(recent.p99_micros)}`;
    const retry = details.retry_in_ms ? ` · next attempt in ${span(Math.ceil(details.retry_in_ms / 1000))}` : "";
    const running = [details.running && count(details.running, "call runs", "calls run"), details.waiting && count(details.waiting, "waits", "wait")].filter(Boolean);
    /** @type {Array<[string, string | undefined]>} */
    const facts = [
      ["Reached at", details.reach], ["Identity", details.identity], ["Revision", details.revision], ["Transport", details.transport],
      ["Supports", details.capabilities], ["Connections", String(details.connections)], ["Now", running.join(", ")],
      ["Starts", `${details.starts}${retry}`], ["Last 5 min", latency], ["Instructions", details.instructions],
      ["Left out", details.left_out.join("\n")], ["Repaired", details.repaired.join("\n")],
    ];
    const shown = facts.filter(([, text]) => text);
    const state = JSON.stringify(shown);
    if (this.#facts.dataset.drawn === state) return;
    this.#facts.dataset.drawn = state;
    this.#facts.replaceChildren(...shown.map(([name, text = ""]) =>
      element("div", { class: WIDE.has(name) || text.length > 60 ? "wide" : undefined }, element("dt", {}, name), element("dd", {}, text))));
  }

  /** @param {ServerDetails} details */
  #drawItems(details) {
    const lists = { tools: details.offered_tools, prompts: details.offered_prompts, resources: details.offered_resources };
    for (const tab of /** @type {const} */ (["tools", "prompts", "resources"])) {
      const shown = this.#tabs.get(tab);
      if (shown) setText(shown, `${TITLES[tab]} ${lists[tab].length.toLocaleString("en")}`);
    }
    if (this.#tab === "logs" || this.#drawnItems === lists[this.#tab]) return;
    this.#drawnItems = lists[this.#tab];
    this.#items.draw(this.#drawnItems);
    setText(this.#more, details.more_items > 0 ? `${count(details.more_items, "further item is", "further items are")} not shown.` : "");
  }

  async #reconnect() {
    const running = this.#app.store.servers.get(this.#name)?.running ?? 0;
    const text = `Restart ${this.#name}? ${count(running, "running call")} will be cut off.`;
    if (running > 0 && !(await confirmed(text, "Restart"))) return;
    await this.#change("reconnect", `${this.#name} was restarted`);
  }

  async #switch() {
    const isDisabled = this.#app.store.servers.get(this.#name)?.state === "disabled";
    await this.#change(isDisabled ? "enable" : "disable", `${this.#name} is ${isDisabled ? "enabled" : "disabled"}`);
  }

  /**
   * @param {"reconnect" | "enable" | "disable"} action
   * @param {string} done
   */
  async #change(action, done) {
    this.#isBusy = true;
    this.draw();
    try {
      await api("server", { method: "POST", body: JSON.stringify({ server: this.#name, action }) });
      announce(done);
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    } finally {
      this.#isBusy = false;
      await this.#app.readReport().catch(() => undefined);
      await this.refresh().catch(() => undefined);
      this.draw();
    }
  }
}

function itemColumns() {
  return [
    { title: "Name", isHead: true, text: (/** @type {ConsoleItem} */ { name }) => name },
    { title: "At the server", name: "quiet", text: (/** @type {ConsoleItem} */ { name, upstream_name }) => (upstream_name && upstream_name !== name ? upstream_name : "") },
    { title: "Description", name: "description", text: (/** @type {ConsoleItem} */ { title, description }) => [title, description].filter(Boolean).join(": ") },
    { title: "Definition", hint: "What describes it to a model", name: "number quiet", text: (/** @type {ConsoleItem} */ { bytes }) => (bytes > 0 ? size(bytes) : "") },
  ];
}

/** @param {string} name */
function quoted(name) {
  return /\s/.test(name) ? `"${name}"` : name;
}
