// Starts the page: the session, the stream, the pages and the keys.

import { CallList } from "./call_list.js";
import { copyText } from "./copy.js";
import { DetailView } from "./detail.js";
import { announce, byId, setText } from "./dom.js";
import { count } from "./format.js";
import { startKeys } from "./keys.js";
import { NoteList } from "./note_list.js";
import { drawOverview } from "./overview.js";
import { PageRecorder, acceptFiles, readRecord, setHubVersion } from "./record.js";
import { SignedOut, api, forgetSession, openSession, signIn } from "./session.js";
import { Store } from "./store.js";
import { EventStream } from "./stream.js";
import { cycleTheme, startTheme } from "./theme.js";

/** @import { Call, HubEvent, HubReport } from "./types.d.ts" */
/** @import { StreamState } from "./stream.js" */

/** How often the states of servers are read, in milliseconds. */
const REPORT_INTERVAL = 10_000;

class ConsolePage {
  store = new Store();
  detail;
  calls;
  notes;
  /** @type {PageRecorder | undefined} */
  recorder;
  /** @type {EventStream | undefined} */
  stream;
  /** The file of a view, instead of the live events. */
  file = "";
  view = "calls";
  list = "calls";
  #endpoint = location.origin;
  #frame = 0;
  #drawn = -1;

  constructor() {
    this.detail = new DetailView(this.store, () => this.#endpoint);
    this.calls = new CallList(this.store, (call) => this.openCall(call));
    this.notes = new NoteList(this.store, (event) => this.openNote(event));
  }

  /** Wires the controls. */
  start() {
    const filter = /** @type {HTMLInputElement} */ (byId("filter"));
    filter.addEventListener("input", () => this.setFilter(filter.value));
    byId("pause").addEventListener("click", () => this.togglePause());
    byId("clear").addEventListener("click", () => this.clear());
    byId("record").addEventListener("click", () => this.toggleRecording());
    byId("show-calls").addEventListener("click", () => this.show("calls", "calls"));
    byId("show-notes").addEventListener("click", () => this.show("calls", "notes"));
    byId("close-file").addEventListener("click", () => location.reload());
    byId("share").addEventListener("click", () => void this.share());
    byId("sign-out").addEventListener("click", () => void this.signOut());
    addEventListener("hashchange", () => this.route());
    acceptFiles((name, text) => this.openRecord(name, text), announce);
    startTheme();
    startKeys([
      { key: "/", text: "Filter", run: () => filter.select() },
      { key: "p", text: "Pause and go on", run: () => this.togglePause() },
      { key: "r", text: "Record and save", run: () => this.toggleRecording() },
      { key: "o", text: "Open a record file", run: () => byId("open-file").click() },
      { key: "n", text: "Calls or notifications", run: () => this.show("calls", this.list === "calls" ? "notes" : "calls") },
      { key: "1", text: "Overview", run: () => this.show("overview") },
      { key: "2", text: "Calls", run: () => this.show("calls", "calls") },
      { key: "f", text: "Enlarge an opened call", run: () => document.body.classList.toggle("enlarged") },
      { key: "t", text: "Theme", run: cycleTheme },
      { key: "Escape", text: "Close, or leave the filter", run: () => this.escape() },
    ]);
    this.route();
  }

  route() {
    this.show(location.hash === "#overview" ? "overview" : "calls");
  }

  /**
   * @param {string} view
   * @param {string} [list]
   */
  show(view, list = this.list) {
    this.view = view;
    this.list = list;
    byId("overview").hidden = view !== "overview";
    byId("calls").hidden = view !== "calls";
    byId("call-grid").hidden = list !== "calls";
    byId("note-grid").hidden = list !== "notes";
    for (const name of ["overview", "calls"]) {
      if (name === view) byId(`nav-${name}`).setAttribute("aria-current", "page");
      else byId(`nav-${name}`).removeAttribute("aria-current");
    }
    byId("show-calls").setAttribute("aria-pressed", String(list === "calls"));
    byId("show-notes").setAttribute("aria-pressed", String(list === "notes"));
    if (view === "overview" && location.hash !== "#overview") history.replaceState(null, "", "#overview");
    if (view === "calls" && location.hash === "#overview") history.replaceState(null, "", "#calls");
    if (view === "calls") (list === "calls" ? this.calls.grid : this.notes.grid).focus();
    this.#drawn = -1;
    this.requestDraw();
  }

  /** @param {string} text */
  setFilter(text) {
    const filter = /** @type {HTMLInputElement} */ (byId("filter"));
    if (filter.value !== text) filter.value = text;
    this.notes.text = text;
    this.calls.setFilter(text);
    const { problems } = this.calls.filter;
    setText(byId("filter-problem"), problems.join("; "));
    filter.setAttribute("aria-invalid", String(problems.length > 0));
    this.#drawn = -1;
    this.requestDraw();
  }

  escape() {
    if (document.activeElement === byId("filter")) return this.calls.grid.focus();
    if (!this.detail.call) return;
    this.detail.close();
    document.body.classList.remove("enlarged");
    (this.list === "calls" ? this.calls.grid : this.notes.grid).focus();
    this.calls.grid.draw();
  }

  togglePause() {
    this.calls.paused = !this.calls.paused;
    byId("pause").setAttribute("aria-pressed", String(this.calls.paused));
    setText(byId("pause"), this.calls.paused ? "Resume" : "Pause");
    if (!this.calls.paused) this.calls.rebuild();
    this.#drawn = -1;
    this.requestDraw();
  }

  clear() {
    this.store.clear();
    this.detail.close();
    this.calls.rebuild();
    this.#drawn = -1;
    this.requestDraw();
  }

  /** @param {Call} call */
  openCall(call) {
    this.detail.open(call);
    requestAnimationFrame(() => this.calls.grid.draw());
  }

  /**
   * Jumps from a notification to its call.
   * @param {HubEvent} event
   */
  openNote(event) {
    const call = event.call === undefined ? undefined : this.store.calls.get(event.call);
    if (!call) return announce("This belongs to no call");
    this.calls.grid.selected = call.id;
    this.detail.open(call, event.seq);
  }

  toggleRecording() {
    const button = byId("record");
    if (this.recorder) {
      this.recorder.save();
      announce(`Saved ${count(this.recorder.events, "event")}`);
      this.recorder = undefined;
    } else {
      this.recorder = new PageRecorder();
      announce("Recording from now on; press again to save");
    }
    button.setAttribute("aria-pressed", String(this.recorder !== undefined));
    setText(byId("record-text"), this.recorder ? "Save" : "Record");
  }

  /** Makes a link for another browser, which sees and changes nothing. */
  async share() {
    const response = await api("links", { method: "POST", body: JSON.stringify({ role: "viewer" }) });
    await copyText(String((await response.json()).url), "read-only link");
  }

  async signOut() {
    this.stream?.stop();
    await api("session", { method: "DELETE" }).catch(() => undefined);
    forgetSession();
    /** @type {HTMLDialogElement} */ (byId("help")).close();
    this.store.clear();
    showSignIn("You are signed out.");
  }

  /**
   * Shows a record file instead of the live events.
   * @param {string} name
   * @param {string} text
   */
  openRecord(name, text) {
    try {
      const events = readRecord(text);
      this.stream?.stop();
      this.file = name;
      this.store.servers.clear();
      this.store.clients.clear();
      this.clear();
      for (const { event, line } of events) this.store.add(event, line);
      this.calls.rebuild();
      byId("file-bar").hidden = false;
      setText(byId("file-name"), `${name}: ${count(events.length, "event")}`);
      byId("sign-in").hidden = true;
      byId("app").hidden = false;
      this.showState("ended");
      this.show("calls", "calls");
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    }
  }

  /** Follows the live events. */
  async connect() {
    const report = await this.readReport();
    byId("sign-in").hidden = true;
    byId("app").hidden = false;
    this.calls.grid.focus();
    if (!report.live) return this.openServedRecord();
    this.stream = new EventStream((event, line) => this.take(event, line), (state) => this.showState(state));
    setInterval(() => {
      if (!this.file && this.view === "overview") this.readReport().catch(() => undefined);
    }, REPORT_INTERVAL);
    await this.stream.follow();
  }

  /** Shows the file that `trunkline console FILE` serves. */
  async openServedRecord() {
    const response = await api("record");
    const name = response.headers.get("x-file-name") ?? "record";
    this.openRecord(decodeURIComponent(name), await response.text());
    byId("close-file").hidden = true;
  }

  async readReport() {
    const report = /** @type {HubReport} */ (await (await api("hub")).json());
    this.#endpoint = report.endpoint || this.#endpoint;
    setHubVersion(report.version);
    setText(byId("version"), report.version);
    byId("share").hidden = report.role !== "operator" || !report.live;
    this.store.takeReport(report);
    this.requestDraw();
    return report;
  }

  /**
   * @param {HubEvent} event
   * @param {string} line
   */
  take(event, line) {
    this.store.add(event, line);
    if (this.recorder && !this.recorder.push(line)) {
      this.toggleRecording();
      announce("The recording was saved: it had reached 256 MiB");
    }
    this.requestDraw();
  }

  /** @param {StreamState} state */
  showState(state) {
    const words = { connecting: "connecting", live: "live", lost: "reconnecting", "signed-out": "signed out", ended: "record file" };
    const shown = byId("stream-state");
    shown.dataset.state = state;
    setText(shown, words[state]);
    if (state === "signed-out") showSignIn("The session has ended.");
  }

  requestDraw() {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    if (this.#drawn === this.store.version) return;
    this.#drawn = this.store.version;
    if (this.view === "overview") {
      drawOverview(this.store, (filter) => {
        this.setFilter(filter);
        this.show("calls", "calls");
      });
      return;
    }
    if (this.list === "calls") this.calls.update();
    else if (!this.calls.paused) this.notes.update();
    this.detail.update();
    this.#drawCounts();
  }

  #drawCounts() {
    const { ordered, dropped } = this.store;
    const [shown, all] = this.list === "calls" ? [this.calls.length, ordered.length] : [this.notes.length, this.store.notes.length];
    const what = this.list === "calls" ? "call" : "notification";
    const parts = [shown === all ? count(all, what) : `${shown.toLocaleString("en")} of ${count(all, what)}`];
    if (this.calls.paused) parts.push(`paused, ${this.calls.waiting} changed`);
    if (dropped > 0) parts.push(`${count(dropped, "event")} dropped`);
    setText(byId("counts"), parts.join(" · "));
    byId("empty").hidden = all > 0 || this.list !== "calls";
    byId("no-match").hidden = all === 0 || shown > 0;
  }
}

/** @param {string} reason */
function showSignIn(reason) {
  byId("sign-in").hidden = false;
  byId("app").hidden = true;
  setText(byId("sign-in-reason"), reason);
}

async function main() {
  const page = new ConsolePage();
  page.start();
  const connect = async () => {
    try {
      await page.connect();
    } catch (error) {
      showSignIn(error instanceof SignedOut ? "The session has ended." : "The hub does not answer.");
    }
  };
  const form = /** @type {HTMLFormElement} */ (byId("sign-in-form"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (byId("bearer"));
    const accepted = await signIn(field.value.trim());
    field.value = "";
    if (accepted) await connect();
    else setText(byId("sign-in-reason"), "The hub does not accept that token.");
  });
  if (await openSession()) await connect();
  else showSignIn("This page needs a link of its own.");
}

void main();
