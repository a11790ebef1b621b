// One call, opened: its messages on both wires in the order of time, and what the hub changed in between.

import { copyMenu } from "./copy.js";
import { byId, button, element } from "./dom.js";
import { clock, count, duration, outcomeText, parseTime, size } from "./format.js";
import { jsonView } from "./json_view.js";
import { messageTitle, pairMessages } from "./pairs.js";

/** @import { Call, HubEvent, Json, StoredEvent } from "./types.d.ts" */
/** @import { WirePair } from "./pairs.js" */
/** @import { MemberChange } from "./diff.js" */
/** @import { Store } from "./store.js" */

/** Pairs that are drawn at most: a call with thousands of progress notifications shows the first and the last. */
const MAX_PAIRS = 200;

export class DetailView {
  /** @type {Call | undefined} */
  call;
  #store;
  #endpoint;
  #onClose;
  #drawn = -1;
  #focusSeq = -1;

  /**
   * @param {Store} store
   * @param {() => string} endpoint
   * @param {() => void} onClose
   */
  constructor(store, endpoint, onClose) {
    this.#store = store;
    this.#endpoint = endpoint;
    this.#onClose = onClose;
  }

  /**
   * Opens a call, at one of its messages if there is a number.
   * @param {Call} call
   * @param {number} [seq]
   */
  open(call, seq = -1) {
    this.call = call;
    this.#drawn = -1;
    this.#focusSeq = seq;
    document.body.classList.add("opened");
    byId("detail").hidden = false;
    this.update();
    if (seq < 0) byId("detail-body").scrollTop = 0;
  }

  close() {
    this.call = undefined;
    document.body.classList.remove("opened", "enlarged");
    byId("detail").hidden = true;
    this.#onClose();
  }

  /** Draws the call again if it changed. */
  update() {
    const { call } = this;
    if (!call || this.#drawn === call.version) return;
    this.#drawn = call.version;
    this.#drawHead(call);
    const pairs = pairMessages(call.events);
    const skipped = pairs.length - MAX_PAIRS;
    const shown = skipped > 0 ? [...pairs.slice(0, MAX_PAIRS / 2), ...pairs.slice(-MAX_PAIRS / 2)] : pairs;
    const body = byId("detail-body");
    const position = body.scrollTop;
    const lines = shown.map((pair) => this.#drawPair(call, pair));
    if (skipped > 0) lines.splice(MAX_PAIRS / 2, 0, element("p", { class: "quiet skipped" }, `${skipped} pairs are not shown`));
    if (pairs.length === 0) lines.push(noMessages());
    body.replaceChildren(this.#wireHeads(call), ...lines);
    body.scrollTop = position;
    if (this.#focusSeq >= 0) this.#focus();
  }

  #focus() {
    const target = byId("detail-body").querySelector(`[data-seq="${this.#focusSeq}"]`);
    this.#focusSeq = -1;
    if (!(target instanceof HTMLElement)) return;
    target.scrollIntoView({ block: "center" });
    target.classList.add("found");
    target.focus({ preventScroll: true });
  }

  /** @param {Call} call */
  #drawHead(call) {
    const outcome = element("span", { class: "badge", "data-outcome": call.outcome }, outcomeText(call.outcome));
    const heading = element("h2", {}, call.name || call.method);
    const target = [call.name && call.method, call.server];
    // A question takes the user's time, which is neither the hub's nor the server's.
    const hub = call.questions === 0 && call.micros !== undefined && call.serverMicros !== undefined
      ? call.micros - call.serverMicros : undefined;
    const figures = [
      clock(call.started),
      call.micros === undefined ? "" : duration(call.micros),
      call.serverMicros === undefined ? "" : `server ${duration(call.serverMicros)}`,
      hub === undefined || hub < 0 ? "" : `hub ${duration(hub)}`,
      call.bytesIn + call.bytesOut > 0 ? `${size(call.bytesIn)} in, ${size(call.bytesOut)} out` : "",
      call.questions > 0 ? count(call.questions, "question") : "",
    ];
    const text = element("div", { class: "title" }, outcome, heading,
      element("span", { class: "quiet", title: call.item }, target.filter(Boolean).join("  →  ")));
    const facts = element("div", { class: "facts" }, ...figures.filter(Boolean).map((figure) => element("span", {}, figure)));
    const actions = element("div", { class: "actions" }, ...copyMenu(call, this.#store, this.#endpoint()),
      button("Close", "Close (Esc)", () => this.close(), { class: "ghost" }));
    const parts = [text, facts, actions];
    if (call.error) parts.push(element("p", { class: "error-text" }, call.error));
    byId("detail-head").replaceChildren(...parts);
  }

  /** @param {Call} call */
  #wireHeads(call) {
    const heads = element("div", { class: "pair wire-heads" });
    for (const wire of /** @type {const} */ (["client", "server"])) {
      const seen = call.events.filter(({ event }) => event.kind === "message" && event.wire === wire);
      const [revisions, transports] = [seen.map(({ event }) => event.revision), seen.map(({ event }) => event.transport)]
        .map((values) => [...new Set(values.filter(Boolean))].join(", "));
      const name = wire === "client" ? call.client : call.server;
      heads.append(element("h3", { class: "side" },
        element("span", { class: "quiet" }, wire === "client" ? "Client" : "Server"), ` ${name} `,
        revisions ? element("span", { class: "chip" }, revisions) : undefined,
        transports ? element("span", { class: "chip" }, transports) : undefined));
      if (wire === "client") heads.append(element("span", { class: "between" }, ""));
    }
    return heads;
  }

  /**
   * @param {Call} call
   * @param {WirePair} pair
   */
  #drawPair(call, pair) {
    const first = pair.from === "client" ? (pair.client ?? pair.server) : (pair.server ?? pair.client);
    const offset = first ? (parseTime(first.event.time) - call.started) * 1000 : 0;
    const arrow = pair.from === "client" ? "→" : "←";
    const between = element("span", { class: "between" },
      element("span", { class: "arrow", "aria-label": pair.from === "client" ? "client to server" : "server to client", role: "img" }, arrow),
      element("span", {}, offset < 1 ? "0" : `+${duration(offset)}`));
    const changes = (/** @type {"client" | "server"} */ wire) => (pair.from === wire ? pair.diff?.from : pair.diff?.to);
    return element("div", { class: `pair from-${pair.from}` },
      drawMessage(pair.client, changes("client")), between, drawMessage(pair.server, changes("server")));
  }
}

/**
 * @param {StoredEvent | undefined} stored
 * @param {Map<string, MemberChange> | undefined} changes
 */
function drawMessage(stored, changes) {
  if (!stored) return element("div", { class: "side empty" });
  const { event } = stored;
  const side = element("article", { class: "side message", "data-seq": event.seq, tabindex: -1 });
  side.append(element("h4", {}, messageTitle(event.message),
    element("span", { class: "quiet" }, event.bytes === undefined ? "" : size(event.bytes))));
  const http = httpText(event);
  if (http) side.append(element("p", { class: "http quiet" }, http));
  if (event.message !== undefined) side.append(jsonView(/** @type {Json} */ (event.message), changes));
  else side.append(element("p", { class: "quiet" }, "The message is over the bound of the stream; this is its beginning."),
    element("pre", { class: "prefix" }, event.message_prefix ?? ""));
  return side;
}

/** @param {HubEvent} event */
function httpText(event) {
  const { http } = event;
  if (!http) return "";
  const head = [http.method, http.path, http.status === undefined ? "" : String(http.status)].filter(Boolean).join(" ");
  const headers = Object.entries(http.headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return [head, ...headers].filter(Boolean).join("\n");
}

function noMessages() {
  return element("p", { class: "quiet hint" },
    "No messages: they are copied only while a console or a recorder is attached, and this call was earlier.");
}
