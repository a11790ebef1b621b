// The calls page: one row per call or notification, live, and an opened call on both wires.

import { CallList } from "./call_list.js";
import { DetailView } from "./detail.js";
import { announce, button, byId, element, setText } from "./dom.js";
import { FILTER_HELP } from "./filter.js";
import { count } from "./format.js";
import { LIST_HELP, gridElement } from "./grid.js";
import { NoteList } from "./note_list.js";
import { registerPage } from "./registry.js";

/** @import { Call, HubEvent } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { Route } from "./route.js" */

const PLACEHOLDER = "Filter: server:git status:error >500ms text";

/** @implements {PageView} */
class CallsView {
  /** Which list is shown. @type {"calls" | "notes"} */
  list = "calls";
  help = [{ title: "Lists", rows: LIST_HELP }, { title: "Filter", rows: FILTER_HELP }];
  keys = [
    { key: "/", text: "Filter", run: () => this.#filter.select() },
    { key: "p", text: "Pause and resume", run: () => this.#togglePause() },
    { key: "n", text: "Calls or notifications", run: () => this.#choose(this.list === "calls" ? "notes" : "calls") },
    { key: "f", text: "Enlarge an opened call", run: () => document.body.classList.toggle("enlarged") },
  ];
  #app;
  #filter;
  #detail;
  #calls;
  #notes;
  /** The call of the address, which may not have come yet. */
  #wanted = "";
  #generation = -1;

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.#app = app;
    this.#filter = element("input", {
      id: "filter", type: "search", "aria-label": "Filter", "aria-describedby": "filter-problem", placeholder: PLACEHOLDER,
      autocomplete: "off", spellcheck: "false",
    });
    this.#filter.addEventListener("input", () => this.#setFilter(this.#filter.value));
    root.append(this.#toolbar(), lists(), detailSection());
    this.#detail = new DetailView(app.store, () => app.endpoint, () => this.#forgetWanted());
    this.#calls = new CallList(app.store, (call) => this.#openCall(call), () => this.#detail.call !== undefined);
    this.#notes = new NoteList(app.store, (event) => this.#openNote(event), () => this.#detail.call !== undefined);
  }

  /** @param {Route} route */
  show(route) {
    this.#showList(route.path[0] === "notifications" ? "notes" : "calls");
    const [filter, wanted] = [route.query.get("filter") ?? "", route.query.get("call") ?? ""];
    if (wanted === "" && this.#detail.call) this.#detail.close();
    this.#wanted = wanted;
    if (filter !== this.#filter.value) this.#setFilter(filter);
    this.#openWanted();
  }

  focus() {
    (this.list === "calls" ? this.#calls : this.#notes).grid.focus();
  }

  escape() {
    if (document.activeElement === this.#filter) return this.focus();
    if (!this.#detail.call) return;
    this.#detail.close();
    this.focus();
    this.#calls.grid.draw();
  }

  draw() {
    const { store } = this.#app;
    if (this.#generation !== store.generation) {
      this.#generation = store.generation;
      if (this.#detail.call && !store.calls.has(this.#detail.call.id)) this.#detail.close();
      this.#calls.rebuild();
    }
    this.#openWanted();
    if (this.list === "calls") this.#calls.update();
    else if (!this.#calls.paused) this.#notes.update();
    this.#detail.update();
    this.#drawCounts();
  }

  #toolbar() {
    return element("div", { class: "toolbar" },
      element("div", { class: "segments", role: "group", "aria-label": "List" },
        button("Calls", "Show the calls (n)", () => this.#choose("calls"), { id: "show-calls" }),
        button("Notifications", "Show what has no response (n)", () => this.#choose("notes"), { id: "show-notes" })),
      this.#filter,
      button("Pause", "Pause the list (p)", () => this.#togglePause(), { id: "pause", "aria-pressed": "false" }),
      button("Clear", "Empty the list", () => this.#clear(), { id: "clear" }),
      element("span", { id: "filter-problem", class: "problem", role: "status" }),
      element("span", { id: "counts", class: "counts" }));
  }

  /** Notes the filter, the list and the opened call in the address. */
  #note() {
    const path = this.list === "notes" ? ["notifications"] : [];
    this.#app.router.note(path, { filter: this.#filter.value, call: this.#wanted || this.#detail.call?.id });
  }

  #forgetWanted() {
    this.#wanted = "";
    this.#note();
  }

  /** @param {"calls" | "notes"} list */
  #choose(list) {
    this.#showList(list);
    this.#note();
    this.focus();
    this.#app.requestDraw();
  }

  /** @param {"calls" | "notes"} list */
  #showList(list) {
    this.list = list;
    byId("call-grid").hidden = list !== "calls";
    byId("note-grid").hidden = list !== "notes";
    byId("show-calls").setAttribute("aria-pressed", String(list === "calls"));
    byId("show-notes").setAttribute("aria-pressed", String(list === "notes"));
  }

  /** @param {string} text */
  #setFilter(text) {
    if (this.#filter.value !== text) this.#filter.value = text;
    this.#notes.text = text;
    this.#calls.setFilter(text);
    const { problems } = this.#calls.filter;
    setText(byId("filter-problem"), problems.join("; "));
    this.#filter.setAttribute("aria-invalid", String(problems.length > 0));
    this.#note();
    this.#app.requestDraw();
  }

  #togglePause() {
    const paused = !this.#calls.paused;
    this.#calls.paused = paused;
    byId("pause").setAttribute("aria-pressed", String(paused));
    setText(byId("pause"), paused ? "Resume" : "Pause");
    if (!paused) this.#calls.rebuild();
    this.#app.requestDraw();
  }

  #clear() {
    this.#app.store.clear();
    this.#app.requestDraw();
  }

  /** Opens the call of the address as soon as it is there. */
  #openWanted() {
    const call = this.#wanted === "" ? undefined : this.#app.store.calls.get(this.#wanted);
    if (!call) return;
    this.#wanted = "";
    if (this.#detail.call === call) return;
    this.#calls.grid.selected = call.id;
    this.#detail.open(call);
  }

  /** @param {Call} call */
  #openCall(call) {
    this.#detail.open(call);
    this.#forgetWanted();
    requestAnimationFrame(() => this.#calls.grid.draw());
  }

  /**
   * Jumps from a notification to its call.
   * @param {HubEvent} event
   */
  #openNote(event) {
    const call = event.call === undefined ? undefined : this.#app.store.calls.get(event.call);
    if (!call) return announce("This belongs to no call");
    this.#calls.grid.selected = call.id;
    this.#detail.open(call, event.seq);
    this.#forgetWanted();
  }

  #drawCounts() {
    const { ordered, notes, dropped } = this.#app.store;
    const [shown, all] = this.list === "calls" ? [this.#calls.length, ordered.length] : [this.#notes.length, notes.length];
    const what = this.list === "calls" ? "call" : "notification";
    const parts = [shown === all ? count(all, what) : `${shown.toLocaleString("en")} of ${count(all, what)}`];
    if (this.#calls.paused) parts.push(`paused, ${this.#calls.waiting} changed`);
    if (dropped > 0) parts.push(`${count(dropped, "event")} dropped`);
    setText(byId("counts"), parts.join(" · "));
    byId("empty").hidden = all > 0 || this.list !== "calls";
    byId("no-match").hidden = all === 0 || shown > 0;
  }
}

function lists() {
  return element("div", { class: "list" },
    gridElement("call-grid", "Calls", [
      ["time", "Time"], ["client", "Client"], ["name", "Name"], ["server", "Server"], ["outcome", "Outcome"],
      ["duration", "Duration"], ["size", "Size"],
    ]),
    gridElement("note-grid", "Notifications", [
      ["time", "Time"], ["client", "From"], ["server", "Kind"], ["name", "Content"], ["jump", "Call"],
    ]),
    element("p", { id: "empty", class: "notice" },
      "Waiting for calls. Point a client at this hub, and each call appears here on both wires."),
    element("p", { id: "no-match", class: "notice", hidden: true }, "Nothing matches the filter."));
}

function detailSection() {
  const legend = /** @type {const} */ ([
    ["added", "+ added by the hub"], ["dropped", "− not passed on"], ["changed", "~ changed"], ["moved", "→ moved"],
  ]);
  return element("section", { id: "detail", class: "detail", "aria-label": "Opened call", hidden: true },
    element("div", { id: "detail-head", class: "detail-head" }),
    element("div", { id: "detail-body", class: "detail-body", role: "region", "aria-label": "Messages", tabindex: 0 }),
    element("p", { class: "legend" }, ...legend.map(([name, text]) => element("span", { class: name }, text))));
}

registerPage({
  id: "calls", title: "Calls", isFirst: true, create: (app, root) => new CallsView(app, root),
});
