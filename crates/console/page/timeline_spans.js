// What the timeline shows: lanes of clients, the hub and servers, with the spans of calls, questions, streams and states.

import { parseTime } from "./format.js";

/** @import { Call, HubEvent } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

/** The rows of one lane; beyond them spans cover each other. */
const MAX_ROWS = 6;

/** The lanes of clients and of servers that are shown: those that were used last. */
export const MAX_LANES = 40;

/** How long after the end of a call its last messages may come, in milliseconds. */
const SETTLE = 2000;

/** The bands of one lane. */
const MAX_BANDS = 300;

/**
 * @typedef {object} TimelineSpan
 * @property {"call" | "question" | "stream"} kind
 * @property {TimelineLane} lane
 * @property {number} row
 * @property {number} start
 * @property {number | undefined} end
 * @property {string} label
 * @property {string} outcome
 * @property {Call | undefined} call
 *
 * @typedef {object} TimelineLane
 * @property {"client" | "hub" | "server"} kind
 * @property {string} name
 * @property {TimelineSpan[]} spans
 * @property {TimelineSpan[]} last the last span of each row
 * @property {Array<{start: number, end: number | undefined, state: string}>} bands states of a server, sessions of a client
 * @property {number} used when it was last used
 *
 * @typedef {{part: string, side: "client" | "hub" | "server", kind: "call" | "question", start: number, end: number | undefined}} CallPart
 */

export class TimelineModel {
  /** @type {Map<string, TimelineLane>} */
  #lanes = new Map();
  /** The spans of each call that may change, by their part. @type {Map<Call, Map<string, TimelineSpan>>} */
  #open = new Map();
  #store;
  #taken = 0;
  /** The first call when the calls were last taken: another one means that calls were removed. @type {Call | undefined} */
  #first;
  #generation = -1;
  #streams = 0;

  /** @param {Store} store */
  constructor(store) {
    this.#store = store;
  }

  /** The lanes in their order: clients, the hub, servers. */
  get lanes() {
    const of = (/** @type {string} */ kind) => [...this.#lanes.values()].filter((lane) => lane.kind === kind);
    const latest = (/** @type {TimelineLane[]} */ lanes) => {
      const kept = new Set([...lanes].sort((a, b) => b.used - a.used).slice(0, MAX_LANES));
      return lanes.filter((lane) => kept.has(lane)).sort((a, b) => a.name.localeCompare(b.name));
    };
    return [...latest(of("client")), ...of("hub"), ...latest(of("server"))];
  }

  /** The first and the last time of everything, if there is anything. */
  get range() {
    let [start, end] = [Infinity, -Infinity];
    for (const lane of this.#lanes.values()) {
      for (const span of lane.spans) {
        start = Math.min(start, span.start);
        end = Math.max(end, span.end ?? span.start);
      }
    }
    return start > end ? undefined : { start, end };
  }

  /** Takes what changed in the store. */
  update() {
    const { ordered, generation } = this.#store;
    if (generation !== this.#generation || (this.#taken > 0 && ordered[0] !== this.#first)) this.#reset();
    this.#generation = generation;
    this.#first = ordered[0];
    for (; this.#taken < ordered.length; this.#taken += 1) {
      const call = ordered[this.#taken];
      if (call) this.#open.set(call, new Map());
    }
    for (const [call, spans] of this.#open) if (this.#takeCall(call, spans)) this.#open.delete(call);
    this.#takeStreams();
    this.#takeBands();
  }

  #reset() {
    this.#lanes.clear();
    this.#open.clear();
    this.#taken = 0;
    this.#streams = 0;
  }

  /**
   * @param {"client" | "hub" | "server"} kind
   * @param {string} name
   */
  #lane(kind, name) {
    const key = `${kind} ${name}`;
    let lane = this.#lanes.get(key);
    if (!lane) {
      lane = { kind, name, spans: [], last: [], bands: [], used: 0 };
      this.#lanes.set(key, lane);
    }
    return lane;
  }

  /**
   * Brings the spans of a call up to date; returns whether nothing more will come.
   * @param {Call} call
   * @param {Map<string, TimelineSpan>} spans
   */
  #takeCall(call, spans) {
    for (const { part, side, kind, start, end } of partsOf(call)) {
      const known = spans.get(part);
      const outcome = kind === "question" ? "waiting" : call.outcome;
      if (known) {
        Object.assign(known, { end, outcome });
        continue;
      }
      // Its first message may not have the name of its client.
      if (side === "client" && !call.relayed && !isOver(call)) continue;
      const name = side === "client" ? call.client : side === "server" ? call.server : "hub";
      if (name === "") continue;
      const label = kind === "question" ? "question" : call.name || call.method;
      spans.set(part, this.#add({ kind, lane: this.#lane(side, name), row: 0, start, end, label, outcome, call }));
    }
    const last = call.events.at(-1);
    return isOver(call) && last !== undefined && Date.now() - parseTime(last.event.time) > SETTLE;
  }

  /** @param {TimelineSpan} span */
  #add(span) {
    const { lane } = span;
    const free = lane.last.findIndex((last) => last.end !== undefined && last.end <= span.start);
    if (free >= 0) span.row = free;
    else if (lane.last.length < MAX_ROWS) span.row = lane.last.length;
    else span.row = earliest(lane.last);
    lane.last[span.row] = span;
    lane.spans.push(span);
    lane.used = Math.max(lane.used, span.start);
    return span;
  }

  #takeStreams() {
    const { streams } = this.#store;
    if (this.#streams > streams.length) this.#streams = 0;
    for (const stream of streams.slice(this.#streams)) {
      const name = stream.name || this.#store.clientName(stream.client) || "a client";
      const lane = this.#lane("client", name);
      const span = this.#add({ kind: "stream", lane, row: 0, start: stream.start, end: undefined, label: "subscriptions/listen", outcome: "ok", call: undefined });
      Object.defineProperty(span, "end", { get: () => stream.end, set: () => undefined, enumerable: true });
    }
    this.#streams = streams.length;
  }

  /** The states of servers and the sessions of clients, from their events. */
  #takeBands() {
    for (const lane of this.#lanes.values()) lane.bands = [];
    for (const { event } of this.#store.notes) {
      if (event.kind === "server_state" && event.server) this.#band(this.#lanes.get(`server ${event.server}`), event, event.state ?? "");
      if (!event.kind.startsWith("client_") || !event.client) continue;
      const lane = this.#lanes.get(`client ${this.#store.clientName(event.client)}`);
      this.#band(lane, event, event.kind === "client_connected" ? "connected" : "gone");
    }
  }

  /**
   * @param {TimelineLane | undefined} lane
   * @param {HubEvent} event
   * @param {string} state
   */
  #band(lane, event, state) {
    if (!lane || lane.bands.length >= MAX_BANDS) return;
    const time = parseTime(event.time);
    const before = lane.bands.at(-1);
    if (before && before.end === undefined) before.end = time;
    if (state !== "gone") lane.bands.push({ start: time, end: undefined, state });
  }
}

/** @param {TimelineSpan[]} last */
function earliest(last) {
  const ends = last.map(({ end }) => end ?? Infinity);
  return Math.max(0, ends.indexOf(Math.min(...ends)));
}

/** @param {Call} call */
function isOver(call) {
  return call.outcome !== "running" && call.outcome !== "waiting";
}

/**
 * The parts of a call on each side.
 * @param {Call} call
 * @returns {CallPart[]}
 */
function partsOf(call) {
  /** @type {Map<string, CallPart>} */
  const parts = new Map();
  const begin = (/** @type {string} */ part, /** @type {CallPart["side"]} */ side, /** @type {CallPart["kind"]} */ kind, /** @type {number} */ start) => {
    if (!parts.has(part)) parts.set(part, { part, side, kind, start, end: undefined });
  };
  const finish = (/** @type {string} */ part, /** @type {number} */ end) => {
    const found = parts.get(part);
    if (found && found.end === undefined) found.end = end;
  };
  let rounds = 0;
  let last = call.started;
  begin("client", "client", "call", call.started);
  for (const { event } of call.events) {
    const time = parseTime(event.time);
    last = Math.max(last, time);
    if (event.kind === "call_started") begin(`hub ${rounds}`, "hub", "call", time);
    if (event.kind === "call_ended") {
      finish(`hub ${rounds}`, time);
      rounds += 1;
    }
    if (event.kind === "input_requested") begin(`question ${event.key}`, "client", "question", time);
    if (event.kind === "input_answered") finish(`question ${event.key}`, time);
    if (event.kind === "message" && event.wire === "server") takeServerMessage(event, time, begin, finish);
  }
  if (!isOver(call)) return [...parts.values()];
  if (!call.relayed) begin("hub 0", "hub", "call", call.started);
  for (const part of parts.values()) part.end ??= last;
  const client = parts.get("client");
  if (client) client.end = last;
  return [...parts.values()];
}

/**
 * @param {HubEvent} event
 * @param {number} time
 * @param {(part: string, side: CallPart["side"], kind: CallPart["kind"], start: number) => void} begin
 * @param {(part: string, end: number) => void} finish
 */
function takeServerMessage(event, time, begin, finish) {
  const { message } = event;
  const id = message?.id === undefined ? "" : JSON.stringify(message.id);
  const isRequest = message?.method !== undefined;
  if (event.direction === "sent" && isRequest && id !== "") begin(`server ${id}`, "server", "call", time);
  else if (event.direction === "received" && !isRequest && id !== "") finish(`server ${id}`, time);
}
