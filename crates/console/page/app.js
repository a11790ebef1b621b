// What the pages share: the events and what they add up to, the session, the address, and the controls in the head of the page.

import { copyText } from "./copy.js";
import { announce, byId, setText } from "./dom.js";
import { count } from "./format.js";
import { startKeys } from "./keys.js";
import { readRecord, setHubVersion } from "./record.js";
import { RecordButton } from "./record_button.js";
import { Router } from "./router.js";
import { api, forgetSession } from "./session.js";
import { hideSignIn, showSignIn } from "./sign_in.js";
import { Store } from "./store.js";
import { EventStream } from "./stream.js";
import { cycleTheme, startTheme } from "./theme.js";

/** @import { HubEvent, HubReport } from "./types.d.ts" */
/** @import { StreamState } from "./stream.js" */

/** The words for the state of the stream. */
const STREAM_STATES = {
  connecting: "connecting", live: "live", lost: "reconnecting", "signed-out": "signed out", ended: "record file",
};

export class ConsoleApp {
  store = new Store();
  /** What the hub last said of itself and this session. @type {HubReport | undefined} */
  report;
  router;
  /** What is called with every event as it comes. @type {Set<(event: HubEvent) => void>} */
  listeners = new Set();
  #recorder = new RecordButton();
  /** @type {EventStream | undefined} */
  #stream;
  /** Whether a record file is shown instead of the live events. */
  #isFile = false;
  #frame = 0;

  constructor() {
    this.router = new Router(this);
    byId("close-file").addEventListener("click", () => location.reload());
    byId("share").addEventListener("click", () => void this.#share());
    byId("sign-out").addEventListener("click", () => void this.#signOut());
    startTheme();
    startKeys(() => [
      ...this.router.keys(),
      { key: "r", text: "Record and save", run: () => this.#recorder.toggle() },
      { key: "o", text: "Open a record file", run: () => byId("open-file").click() },
      { key: "t", text: "Theme", run: cycleTheme },
      { key: "Escape", text: "Close, or leave the filter", run: () => this.router.view?.escape?.() },
    ], () => this.router.view?.help ?? []);
  }

  /** Whether the hub can be reached for more than a record file. */
  get isLive() {
    return !this.#isFile && this.report?.live === true;
  }

  /** Whether this session may change something. */
  get isOperator() {
    return this.isLive && this.report?.role === "operator";
  }

  /** The URL of the MCP endpoint. */
  get endpoint() {
    return this.report?.endpoint || location.origin;
  }

  /** Draws the page that is shown in the next frame. */
  requestDraw() {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.router.view?.draw();
    });
  }

  /** Follows the live events. */
  async connect() {
    const report = await this.readReport();
    if (!report.live) return this.#openServedRecord();
    this.#start();
    this.#stream = new EventStream((event, line) => this.#take(event, line), (state) => this.#showState(state));
    await this.#stream.follow();
  }

  /** Reads what the hub says of itself. */
  async readReport() {
    const report = /** @type {HubReport} */ (await (await api("hub")).json());
    this.report = report;
    setHubVersion(report.version);
    setText(byId("version"), report.version);
    byId("share").hidden = report.role !== "operator" || !report.live;
    this.store.takeReport(report);
    this.requestDraw();
    return report;
  }

  /**
   * Shows a record file instead of the live events.
   * @param {string} name
   * @param {string} text
   */
  openRecord(name, text) {
    try {
      const events = readRecord(text);
      this.#stream?.stop();
      this.#isFile = true;
      this.store.reset();
      for (const { event, line } of events) this.store.add(event, line);
      byId("file-bar").hidden = false;
      setText(byId("file-name"), `${name}: ${count(events.length, "event")}`);
      this.#showState("ended");
      this.#start();
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    }
  }

  /** Shows the page of the address, once it is known what this session may see. */
  #start() {
    hideSignIn();
    byId("app").hidden = false;
    this.router.start();
  }

  /** Shows the file that `trunkline console FILE` serves. */
  async #openServedRecord() {
    const response = await api("record");
    const name = response.headers.get("x-file-name") ?? "record";
    this.openRecord(decodeURIComponent(name), await response.text());
    byId("close-file").hidden = true;
  }

  /**
   * @param {HubEvent} event
   * @param {string} line
   */
  #take(event, line) {
    this.store.add(event, line);
    this.#recorder.push(line);
    for (const listener of this.listeners) listener(event);
    this.requestDraw();
  }

  /** @param {StreamState} state */
  #showState(state) {
    const shown = byId("stream-state");
    shown.dataset.state = state;
    setText(shown, STREAM_STATES[state]);
    if (state === "signed-out") showSignIn("The session has ended.");
  }

  /** Makes a link for another browser, which sees and changes nothing. */
  async #share() {
    const response = await api("links", { method: "POST", body: JSON.stringify({ role: "viewer" }) });
    await copyText(String((await response.json()).url), "read-only link");
  }

  async #signOut() {
    this.#stream?.stop();
    await api("session", { method: "DELETE" }).catch(() => undefined);
    forgetSession();
    /** @type {HTMLDialogElement} */ (byId("help")).close();
    this.store.reset();
    showSignIn("You are signed out.");
  }
}
