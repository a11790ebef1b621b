// The servers page: each server with its logs, what it offers and why it failed; restart, enable and disable.

import { element, setText } from "./dom.js";
import { VirtualGrid, gridElement } from "./grid.js";
import { registerPage } from "./registry.js";
import { byUrgency } from "./server_order.js";
import { ServerPanel } from "./server_panel.js";

/** @import { ServerState } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { Route } from "./route.js" */

/** @implements {PageView} */
class ServersView {
  interval = 5000;
  keys = [
    { key: "/", text: "Filter", run: () => this.#filter.select() },
    { key: "l", text: "Next tab: logs, tools, prompts, resources", run: () => this.#panel.nextTab() },
  ];
  #app;
  #root;
  #filter = element("input", { id: "server-filter", type: "search", "aria-label": "Filter servers", placeholder: "Filter", autocomplete: "off", spellcheck: "false" });
  #grid;
  #panel;
  /** @type {ServerState[]} */
  #shown = [];
  #name = "";
  #drawn = -1;

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.#app = app;
    this.#root = root;
    this.#filter.addEventListener("input", () => {
      this.#drawn = -1;
      this.#app.requestDraw();
    });
    this.#panel = new ServerPanel(app, () => this.#note(), () => this.#close());
    root.append(
      element("div", { class: "server-list" }, element("div", { class: "toolbar" }, this.#filter),
        element("div", { class: "list" }, gridElement("server-grid", "Servers", [["name", "Server"], ["state-cell", "State"]]))),
      this.#panel.root);
    this.#grid = new VirtualGrid("server-grid", 2, {
      length: () => this.#shown.length,
      row: (at) => this.#shown[at],
      id: ({ name }) => name,
      version: (server) => server.changes,
      draw: drawRow,
      open: ({ name }) => this.#open(name),
      isOpen: () => true,
    });
  }

  /** @param {Route} route */
  show(route) {
    const [name = "", tab = ""] = route.path;
    this.#setName(name);
    this.#panel.setTab(tab);
  }

  focus() {
    this.#grid.focus();
  }

  escape() {
    if (document.activeElement !== this.#filter && isNarrow()) this.#close();
    else this.focus();
  }

  async refresh() {
    await this.#app.readReport();
    await this.#panel.refresh();
  }

  draw() {
    const { store } = this.#app;
    if (this.#drawn !== store.version) {
      this.#drawn = store.version;
      const wanted = this.#filter.value.trim().toLowerCase();
      const all = [...store.servers.values()].sort(byUrgency);
      this.#shown = all.filter(({ name, state }) => name.toLowerCase().includes(wanted) || state === wanted);
      // Where there is room for both, one server is always shown.
      const first = this.#shown[0];
      if (this.#name === "" && first && !isNarrow()) this.#setName(first.name);
      this.#grid.draw();
    }
    this.#panel.draw();
  }

  /** @param {string} name */
  #open(name) {
    this.#setName(name);
    this.#note();
  }

  #close() {
    this.#setName("");
    this.#note();
    this.focus();
    this.#drawn = -1;
    this.#app.requestDraw();
  }

  /** @param {string} name */
  #setName(name) {
    if (this.#name === name) return;
    this.#name = name;
    this.#grid.selected = name;
    this.#root.classList.toggle("chosen", name !== "");
    this.#panel.open(name);
    this.#grid.draw();
  }

  #note() {
    this.#app.router.note(this.#name === "" ? [] : [this.#name, ...this.#panel.path]);
  }
}

/** Whether there is room for only one of the list and the server. */
function isNarrow() {
  return matchMedia("(max-width: 720px)").matches;
}

/**
 * @param {ServerState} server
 * @param {HTMLElement[]} cells
 */
function drawRow({ name, state }, [nameCell, stateCell]) {
  if (!nameCell || !stateCell) return;
  setText(nameCell, name);
  nameCell.className = "name";
  nameCell.title = name;
  setText(stateCell, state);
  stateCell.className = "state-cell state";
  stateCell.dataset.state = state;
}

registerPage({
  id: "servers", title: "Servers", isOffered: (report) => report?.sees_all === true,
  create: (app, root) => new ServersView(app, root),
});
