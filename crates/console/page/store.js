// What the page knows: calls, clients and servers, put together from events, within bounds.

import { parseTime } from "./format.js";
import { takeStream } from "./streams.js";

/** @import { ClientStream } from "./streams.js" */
/** @import { Call, ClientState, HubEvent, HubReport, ServerState, StoredEvent } from "./types.d.ts" */

/** The calls that are kept, and the characters of all lines together; docs/limits.md lists both. */
export const MAX_CALLS = 20_000;
export const MAX_CHARACTERS = 48 << 20;

/** The events that belong to no call: messages of sessions, states, logs. */
export const MAX_OTHER_EVENTS = 5000;

/** The clients that are kept. */
export const MAX_CLIENTS = 500;

/** The events of one call that are kept. */
export const MAX_CALL_EVENTS = 2000;

export class Store {
  /** @type {Map<string, Call>} */
  calls = new Map();
  /** The calls by their first event. @type {Call[]} */
  ordered = [];
  /** All notifications, logs, lines of standard error and states, the oldest first. @type {StoredEvent[]} */
  notes = [];
  /** @type {Map<string, ClientState>} */
  clients = new Map();
  /** @type {Map<string, ServerState>} */
  servers = new Map();
  /** The calls that changed since they were last taken. @type {Set<Call>} */
  changed = new Set();
  /** Calls that the bounds removed, since they were last taken. @type {Call[]} */
  removed = [];
  /** Subscriptions of clients. @type {ClientStream[]} */
  streams = [];
  /** Events that the hub or the bounds dropped. */
  dropped = 0;
  events = 0;
  /** Grows with every event and every report. */
  version = 0;
  /** Grows whenever calls were forgotten other than by the bounds. */
  generation = 0;
  #characters = 0;

  /**
   * @param {HubEvent} event
   * @param {string} line
   */
  add(event, line) {
    this.events += 1;
    this.version += 1;
    const stored = { event, line };
    if (event.kind === "dropped") this.dropped += event.count ?? 0;
    if (event.kind.startsWith("client_")) this.#takeClient(event);
    if (event.kind === "server_state") this.#takeServer(event);
    if (isNote(event)) {
      this.notes.push(stored);
      if (this.notes.length > MAX_OTHER_EVENTS) this.notes.splice(0, MAX_OTHER_EVENTS / 10);
    }
    if (event.call !== undefined) this.#takeCall(stored, event.call);
    else if (event.kind === "message") takeStream(this.streams, event);
  }

  /** @param {HubReport} report */
  takeReport(report) {
    this.version += 1;
    for (const server of report.servers) {
      const known = this.#server(server.name);
      known.state = server.state;
      known.reason = server.reason ?? "";
      known.revision = server.revision ?? known.revision;
      known.transport = server.transport ?? known.transport;
      known.starts = server.starts ?? known.starts;
      known.tools = server.tools;
      known.running = server.running ?? 0;
      known.retryInMs = server.retry_in_ms ?? 0;
      known.isExcluded = server.is_excluded ?? false;
    }
    const names = new Set(report.servers.map(({ name }) => name));
    for (const name of this.servers.keys()) if (!names.has(name)) this.servers.delete(name);
  }

  /** Forgets calls and notifications, and keeps servers and clients. */
  clear() {
    this.calls.clear();
    this.ordered = [];
    this.notes = [];
    this.streams = [];
    this.changed.clear();
    this.removed = [];
    this.dropped = 0;
    this.events = 0;
    this.#characters = 0;
    this.version += 1;
    this.generation += 1;
  }

  /** Forgets everything. */
  reset() {
    this.servers.clear();
    this.clients.clear();
    this.clear();
  }

  /**
   * The name of a client, if it said one.
   * @param {string} id
   */
  clientName(id) {
    return this.clients.get(id)?.name || id;
  }

  /**
   * @param {StoredEvent} stored
   * @param {string} id
   */
  #takeCall(stored, id) {
    const { event, line } = stored;
    let call = this.calls.get(id);
    if (!call) {
      call = newCall(id, event);
      this.calls.set(id, call);
      this.ordered.push(call);
    }
    describe(call, event);
    this.#nameClient(call, event);
    if (event.kind === "call_ended") this.#countEnd(call, event);
    if (call.events.length < MAX_CALL_EVENTS) {
      call.events.push(stored);
      call.size += line.length;
      this.#characters += line.length;
    } else {
      this.dropped += 1;
    }
    call.version += 1;
    this.changed.add(call);
    if (this.ordered.length > MAX_CALLS || this.#characters > MAX_CHARACTERS) this.#evict();
  }

  /** Removes the oldest tenth, so that this is rare. */
  #evict() {
    const gone = this.ordered.splice(0, Math.max(1, Math.floor(this.ordered.length / 10)));
    for (const call of gone) {
      this.calls.delete(call.id);
      this.changed.delete(call);
      this.#characters -= call.size;
    }
    this.removed.push(...gone);
  }

  /**
   * @param {Call} call
   * @param {HubEvent} event
   */
  #countEnd(call, event) {
    const failed = event.outcome === "error" || event.outcome === "tool_error" ? 1 : 0;
    const server = this.servers.get(call.server);
    if (server) {
      server.calls += 1;
      server.errors += failed;
    }
    const client = this.clients.get(call.clientId);
    if (client) {
      client.calls += 1;
      client.errors += failed;
    }
  }

  /** @param {HubEvent} event */
  #takeClient(event) {
    const id = event.client ?? "";
    const known = this.clients.get(id);
    this.clients.set(id, {
      id,
      name: event.name || known?.name || id,
      version: event.version ?? known?.version ?? "",
      principal: event.principal ?? known?.principal ?? "",
      revision: event.revision ?? known?.revision ?? "",
      transport: event.transport ?? known?.transport ?? "",
      state: event.kind === "client_connected" ? "connected" : "gone",
      since: parseTime(event.time),
      calls: known?.calls ?? 0,
      errors: known?.errors ?? 0,
    });
    this.#boundClients();
  }

  /** Clients that are gone stay in sight for a while, but not without end. */
  #boundClients() {
    if (this.clients.size <= MAX_CLIENTS) return;
    const all = [...this.clients.values()];
    const gone = all.find((client) => client.state !== "connected") ?? all[0];
    if (gone) this.clients.delete(gone.id);
  }

  /**
   * Names the client of a call; one of the modern era is known by its calls alone.
   * @param {Call} call
   * @param {HubEvent} event
   */
  #nameClient(call, event) {
    if (event.client) call.clientId = event.client;
    const stated = event.client_name || statedName(event);
    if (stated) call.client = stated;
    else if (event.client && (call.client === "" || call.client === event.client)) call.client = this.clientName(event.client);
    if (event.kind !== "call_started" || event.client || !event.client_name) return;
    call.clientId = `name ${event.client_name}`;
    const since = this.clients.get(call.clientId)?.since ?? call.started;
    const counts = this.clients.get(call.clientId) ?? { calls: 0, errors: 0 };
    this.clients.set(call.clientId, {
      id: call.clientId, name: event.client_name, version: "", principal: "", revision: "", transport: "",
      state: "stateless", since, calls: counts.calls, errors: counts.errors,
    });
    this.#boundClients();
  }

  /** @param {HubEvent} event */
  #takeServer(event) {
    if (!event.server) return;
    const server = this.#server(event.server);
    if (event.state === "ready" && server.state !== "ready") server.starts += 1;
    server.state = event.state ?? server.state;
    server.reason = event.reason ?? "";
    if (event.reason) server.lastFailure = { time: parseTime(event.time), reason: event.reason };
    server.changes += 1;
    server.revision = event.revision ?? server.revision;
    server.transport = event.transport ?? server.transport;
  }

  /** @param {string} name */
  #server(name) {
    let server = this.servers.get(name);
    if (!server) {
      server = {
        name, state: "", reason: "", revision: "", transport: "", starts: 0, tools: undefined, calls: 0, errors: 0,
        running: 0, retryInMs: 0, isExcluded: false, lastFailure: undefined, changes: 0,
      };
      this.servers.set(name, server);
    }
    return server;
  }
}

/**
 * @param {string} id
 * @param {HubEvent} event
 * @returns {Call}
 */
function newCall(id, event) {
  return {
    id, seq: event.seq, started: parseTime(event.time), client: event.client ?? "", clientId: "", method: event.method ?? "",
    name: "", server: "", item: "", relayed: false, outcome: "running", micros: undefined, serverMicros: undefined, bytesIn: 0,
    bytesOut: 0, error: "", questions: 0, events: [], size: 0, version: 0,
  };
}

/**
 * Takes from an event what it tells of its call.
 * @param {Call} call
 * @param {HubEvent} event
 */
function describe(call, event) {
  switch (event.kind) {
    case "call_started":
      call.relayed = true;
      call.method = event.method ?? call.method;
      call.name = event.name ?? "";
      call.server = event.server ?? call.server;
      call.item = event.item ?? "";
      break;
    case "call_ended":
      call.outcome = event.outcome ?? "ok";
      call.micros = event.micros;
      call.serverMicros = event.server_micros;
      call.bytesIn = event.bytes_in ?? 0;
      call.bytesOut = event.bytes_out ?? 0;
      call.error = event.error ?? "";
      break;
    case "input_requested":
      call.questions += 1;
      if (call.outcome === "running") call.outcome = "waiting";
      break;
    case "input_answered":
      if (call.outcome === "waiting") call.outcome = "running";
      break;
    case "message":
      if (event.server && !call.server) call.server = event.server;
      if (!call.method && event.message?.method) call.method = event.message.method;
      if (!call.relayed && event.wire === "client" && event.direction === "sent") describeOwnResponse(call, event);
      // A client with a session is asked while its call stays open.
      if (call.outcome === "input_required" && isQuestionToClient(event)) call.outcome = "waiting";
      break;
  }
}

/** @param {HubEvent} event */
function isQuestionToClient({ wire, direction, message }) {
  return wire === "client" && direction === "sent" && message?.method !== undefined && message.id !== undefined;
}

/**
 * The name that a client of the modern era has in its message.
 * @param {HubEvent} event
 */
function statedName({ wire, direction, message }) {
  if (wire !== "client" || direction !== "received") return "";
  /** @type {any} */
  const params = message?.params;
  const name = params?._meta?.["io.modelcontextprotocol/clientInfo"]?.name;
  return typeof name === "string" ? name : "";
}

/**
 * Takes the outcome of a request that the hub answers itself, such as a list, from its response.
 * @param {Call} call
 * @param {HubEvent} event
 */
function describeOwnResponse(call, event) {
  const { message } = event;
  if (!message || message.method !== undefined) return;
  call.outcome = message.error === undefined ? "ok" : "error";
  call.micros = (parseTime(event.time) - call.started) * 1000;
  call.bytesOut = event.bytes ?? 0;
}

/**
 * Whether an event is shown in the list of notifications: what has no answer.
 * @param {HubEvent} event
 */
function isNote(event) {
  if (event.kind === "message") return event.message?.method !== undefined && event.message.id === undefined;
  return ["log", "stderr", "server_state", "client_connected", "client_gone", "dropped"].includes(event.kind);
}
