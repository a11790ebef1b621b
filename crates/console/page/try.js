// The page on which tools, prompts and resources are tried.

import { button, element } from "./dom.js";
import { registerPage } from "./registry.js";
import { TryCatalog, kindOf } from "./try_catalog.js";
import { TryHistory } from "./try_history.js";
import { ArgumentsPane } from "./try_item.js";
import { TryList } from "./try_list.js";
import { ResourcePane } from "./try_resource.js";
import { TryRun, cancelButton } from "./try_run.js";

/** @import { TryItem } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { Route } from "./route.js" */
/** @import { TryKind } from "./try_catalog.js" */
/** @import { TryEntry } from "./try_history.js" */
/** @import { RunRequest } from "./try_run.js" */

/** @type {ReadonlyArray<readonly [TryKind, string]>} */
const KINDS = [["tools", "Tools"], ["prompts", "Prompts"], ["resources", "Resources"]];

/** @implements {PageView} */
class TryView {
  keys = [
    { key: "/", text: "Filter the list", run: () => this.#list.focusFilter() },
    { key: "e", text: "The arguments", run: () => void this.#pane?.focus() },
  ];
  help = [{ title: "Try", rows: /** @type {Array<[string, string]>} */ ([["Ctrl Enter", "Call"], ["Esc", "Cancel"]]) }];
  #app;
  #root;
  #catalog;
  #list = new TryList((item, isChosen) => this.#go(item, isChosen));
  #history = new TryHistory((entry) => this.#openEntry(entry), (entry) => this.#openEntry(entry, entry));
  #run = new TryRun((uri) => this.#app.router.go("try", ["resources", uri]), () => this.#runChanged());
  #main = element("div", { class: "try-pane-place" });
  /** @type {Map<TryKind, HTMLButtonElement>} */
  #segments = new Map();
  #kind = /** @type {TryKind} */ ("tools");
  /** @type {TryItem | undefined} */
  #item;
  /** The item of the address, which may not have been listed yet. */
  #wanted = "";
  /** @type {ArgumentsPane | ResourcePane | undefined} */
  #pane;
  /** Whether the focus goes into the pane, and not to the list, from which one may walk on. */
  #entersPane = true;
  /** Whether the focus goes into the pane once its item is listed. */
  #entersLater = false;
  /** Arguments for the item of the address. @type {string | undefined} */
  #args;
  /** A call to make again as soon as its item is shown. @type {TryEntry | undefined} */
  #again;
  /** The states of the servers when the lists were read. */
  #servers = "";
  #drawn = -1;

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.#app = app;
    this.#root = root;
    this.#catalog = new TryCatalog(app.store);
    const segments = KINDS.map(([kind, text]) => {
      const made = button(text, `Show the ${kind}`, () => this.#app.router.go("try", [kind]), { id: `try-${kind}` });
      this.#segments.set(kind, made);
      return made;
    });
    root.append(
      element("aside", { class: "try-side", "aria-label": "What can be tried" },
        element("div", { class: "segments", role: "group", "aria-label": "Kind" }, ...segments), this.#list.element, this.#history.element),
      element("div", { class: "try-main" },
        button("‹ Back to the list", "Back to the list", () => this.#app.router.go("try", [this.#kind]), { class: "ghost try-back" }),
        this.#main, this.#run.element));
  }

  /** @param {Route} route */
  show(route) {
    const [kind = "tools", id = ""] = route.path;
    const known = KINDS.find(([name]) => name === kind)?.[0] ?? "tools";
    if (known !== this.#kind) this.#drawn = -1;
    this.#kind = known;
    for (const [name, segment] of this.#segments) segment.setAttribute("aria-pressed", String(name === this.#kind));
    this.#wanted = id;
    this.#root.classList.toggle("chosen", id !== "");
    if (id === "") this.#close();
    this.#openWanted();
  }

  /** A subscription is of this page alone. */
  hide() {
    this.#pane?.close();
  }

  focus() {
    const enters = this.#entersPane && this.#pane !== undefined;
    this.#entersLater = this.#entersPane && this.#pane === undefined && this.#wanted !== "";
    this.#entersPane = true;
    // Where the list is not shown beside it, the pane is all that there is.
    if ((enters || !this.#list.element.checkVisibility()) && this.#pane?.focus()) return;
    this.#list.focus();
  }

  escape() {
    if (this.#run.isRunning) this.#run.cancel();
    else this.#list.focus();
  }

  async refresh() {
    const state = this.#serverStates();
    const isKnown = this.#catalog.loaded.has(this.#kind) && state === this.#servers && this.#catalog.problems[this.#kind] === "";
    if (isKnown) return;
    if (state !== this.#servers) this.#catalog.loaded.clear();
    this.#servers = state;
    await this.#catalog.load(this.#kind);
  }

  draw() {
    if (this.#drawn !== this.#catalog.version) {
      this.#drawn = this.#catalog.version;
      this.#list.show(this.#catalog.items[this.#kind], this.#catalog.problems[this.#kind], this.#catalog.loaded.has(this.#kind));
      this.#openWanted();
    }
    if (this.#serverStates() !== this.#servers && this.#servers !== "") {
      // A server came or went, and so did what it has.
      this.#servers = this.#serverStates();
      this.#catalog.loaded.clear();
      void this.#catalog.load(this.#kind).then(() => this.#app.requestDraw());
    }
  }

  #serverStates() {
    const ready = [...this.#app.store.servers.values()].filter(({ state }) => state === "ready").map(({ name }) => name);
    return `servers ${ready.sort().join(" ")}`;
  }

  /**
   * @param {TryItem} item
   * @param {boolean} isChosen
   */
  #go(item, isChosen) {
    this.#entersPane = isChosen;
    this.#app.router.go("try", [kindOf(item), item.id]);
  }

  /** Opens the item of the address as soon as it is listed; a URI need not be on a list. */
  #openWanted() {
    if (this.#wanted === "") return;
    const listed = this.#catalog.find(this.#kind, this.#wanted);
    const isSame = this.#item?.id === this.#wanted && kindOf(this.#item) === this.#kind;
    if (isSame && this.#args === undefined) return this.#list.select(this.#wanted);
    const isUri = this.#kind === "resources" && this.#catalog.loaded.has("resources");
    const item = listed ?? (isUri ? unlisted(this.#wanted) : undefined);
    if (!item) return;
    this.#open(item);
  }

  /** @param {TryItem} item */
  #open(item) {
    this.#close();
    this.#item = item;
    const host = { run: (/** @type {RunRequest} */ request, /** @type {string} */ label) => void this.#start(item, request, label), cancelButton: () => cancelButton(this.#run) };
    const isArguments = item.kind === "tool" || item.kind === "prompt";
    this.#pane = isArguments ? new ArgumentsPane(item, host, this.#args) : new ResourcePane(item, host, this.#args);
    this.#args = undefined;
    this.#main.replaceChildren(this.#pane.element);
    this.#run.element.hidden = true;
    this.#list.select(item.id);
    this.#runChanged();
    const again = this.#again;
    this.#again = undefined;
    if (again) return void this.#start(item, again.request, again.label);
    if (this.#entersLater && document.activeElement?.closest("main") === this.#root) this.#pane.focus();
    this.#entersLater = false;
  }

  #close() {
    this.#run.cancel();
    this.#pane?.close();
    this.#pane = undefined;
    this.#item = undefined;
    this.#list.select("");
    this.#run.element.hidden = true;
    this.#main.replaceChildren(element("p", { class: "quiet try-empty" }, "Choose a tool, a prompt or a resource. What you call here goes through the hub like the calls of any client, and is on the page Calls."));
  }

  /**
   * @param {TryItem} item
   * @param {RunRequest} request
   * @param {string} label
   */
  async #start(item, request, label) {
    /** @type {TryEntry} */
    const entry = { item, request, label, outcome: "running", micros: undefined, time: Date.now() };
    this.#history.add(entry);
    const { outcome, micros } = await this.#run.start(request);
    entry.outcome = outcome;
    entry.micros = micros;
    this.#history.draw();
  }

  /**
   * Shows the arguments of an earlier call.
   * @param {TryEntry} entry
   * @param {TryEntry} [again] the same, if it is to be made again
   */
  #openEntry(entry, again) {
    this.#again = again;
    this.#args = entry.request.args ?? String(entry.request.params.uri ?? "");
    this.#item = undefined;
    this.#app.router.go("try", [kindOf(entry.item), entry.item.id]);
  }

  #runChanged() {
    const cancel = document.getElementById("try-cancel");
    if (cancel instanceof HTMLButtonElement) cancel.disabled = !this.#run.isRunning;
  }
}

/**
 * A resource that no list has, such as that of a link in a result.
 * @param {string} uri
 * @returns {TryItem}
 */
function unlisted(uri) {
  return { kind: "resource", id: uri, title: uri, description: "", server: "", raw: { uri } };
}

registerPage({
  id: "try", title: "Try",
  isOffered: (report) => report?.role === "operator" && report.live,
  create: (app, root) => new TryView(app, root),
});
