// The events of the hub as the page reads them; docs/console.md describes every member.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A JSON-RPC message as far as the page looks into it. */
export interface RpcMessage {
  [name: string]: Json | undefined;
  id?: string | number | null;
  method?: string;
}

export interface HttpInfo {
  method?: string;
  path?: string;
  status?: number;
  headers?: { [name: string]: string };
}

/** One event of the stream: one line of a record file. */
export interface HubEvent {
  seq: number;
  time: string;
  kind: string;
  call?: string;
  client?: string;
  client_name?: string;
  server?: string;
  wire?: "client" | "server";
  direction?: "received" | "sent";
  revision?: string;
  transport?: string;
  http?: HttpInfo;
  message?: RpcMessage;
  message_prefix?: string;
  bytes?: number;
  method?: string;
  name?: string;
  item?: string;
  outcome?: string;
  micros?: number;
  server_micros?: number;
  bytes_in?: number;
  bytes_out?: number;
  error?: string;
  key?: string;
  by?: string;
  version?: string;
  principal?: string;
  state?: string;
  reason?: string;
  level?: string;
  logger?: string;
  data?: Json;
  line?: string;
  count?: number;
}

/** An event with the line that it was read from. */
export interface StoredEvent {
  event: HubEvent;
  line: string;
}

/** One call, put together from its events. */
export interface Call {
  id: string;
  /** The number of its first event: the order of calls. */
  seq: number;
  /** Milliseconds since 1970, with fractions. */
  started: number;
  client: string;
  /** The id of its client, if that has a session or a connection, or else a name. */
  clientId: string;
  method: string;
  name: string;
  server: string;
  item: string;
  /** Whether a server has to do with it, and the hub reports its begin and end. */
  relayed: boolean;
  /** `running` or `waiting` until it has ended. */
  outcome: string;
  micros: number | undefined;
  serverMicros: number | undefined;
  bytesIn: number;
  bytesOut: number;
  error: string;
  /** How many questions its server asked. */
  questions: number;
  events: StoredEvent[];
  /** The characters of its lines. */
  size: number;
  /** Grows with every change, so that a row knows whether to be drawn again. */
  version: number;
}

/** A client of the hub. */
export interface ClientState {
  id: string;
  name: string;
  version: string;
  principal: string;
  revision: string;
  transport: string;
  /** `connected`, `gone`, or `stateless` for a client of the modern era, which has no connection. */
  state: string;
  since: number;
  calls: number;
  errors: number;
}

/** A server of the hub. */
export interface ServerState {
  name: string;
  state: string;
  reason: string;
  revision: string;
  transport: string;
  starts: number;
  tools: number | undefined;
  /** The calls that ended, for its figures. */
  calls: number;
  errors: number;
  /** The calls that run. */
  running: number;
  /** In how many milliseconds it is tried again. */
  retryInMs: number;
  /** Whether the hub leaves it out, so that it can be neither switched nor restarted. */
  isExcluded: boolean;
  /** Why it failed, and when, also if it is well again. */
  lastFailure: { time: number; reason: string } | undefined;
  /** Grows whenever its state changes. */
  changes: number;
}

/** What the hub says of itself. */
export interface HubReport {
  version: string;
  endpoint: string;
  role: "operator" | "viewer";
  sees_all: boolean;
  live: boolean;
  servers: Array<{
    name: string;
    state: string;
    reason?: string;
    revision?: string;
    transport?: string;
    starts?: number;
    tools?: number;
    running?: number;
    retry_in_ms?: number;
    is_excluded?: boolean;
  }>;
}

export type JsonMap = { [name: string]: Json };

/** A tool, prompt, resource or template of the hub. */
export interface TryItem {
  kind: "tool" | "prompt" | "resource" | "template";
  /** The name, or the URI. */
  id: string;
  title: string;
  description: string;
  server: string;
  raw: JsonMap;
}

/** A question to a client of the hub. */
export interface ClientQuestion {
  number: number;
  call?: string;
  client: string;
  principal: string;
  revision: string;
  method: string;
  name?: string;
  answerable: boolean;
  request: { method: string; params: JsonMap };
}

/** The calls of the last five minutes. */
export interface RecentFigures {
  seconds: number;
  calls: number;
  errors: number;
  p50_micros: number;
  p95_micros: number;
  p99_micros: number;
}

/** The calls of one server. */
export interface ServerFigures {
  name: string;
  /** Since the hub started. */
  calls: number;
  errors: number;
  recent: RecentFigures;
  /** The calls of each minute of the last hour, the oldest first; nothing without any. */
  minutes: number[];
}

/** The calls of the last hour. */
export interface FigureReport {
  slot: number;
  slot_seconds: number;
  recent: RecentFigures;
  /** Slot, calls, errors, cancelled, three percentiles in microseconds, bytes of results. */
  points: number[][];
  servers: ServerFigures[];
}

/** An item that a server offers. */
export interface ConsoleItem {
  name: string;
  upstream_name?: string;
  title?: string;
  description?: string;
  bytes: number;
}

/** What is known of one server. */
export interface ServerDetails {
  name: string;
  state: string;
  reason?: string;
  revision?: string;
  transport?: string;
  starts: number;
  connections: number;
  running: number;
  waiting: number;
  retry_in_ms?: number;
  is_excluded: boolean;
  reach: string;
  identity?: string;
  capabilities?: string;
  instructions?: string;
  output?: string;
  left_out: string[];
  repaired: string[];
  offered_tools: ConsoleItem[];
  offered_prompts: ConsoleItem[];
  offered_resources: ConsoleItem[];
  more_items: number;
}

/** What the tools of a server cost a model, in bytes. */
export interface ServerCost {
  name: string;
  tools: number;
  definition_bytes: number;
  largest: ConsoleItem[];
  calls: number;
  result_bytes: number;
}

/** A legacy session of a client. */
export interface ClientSession {
  id: string;
  principal: string;
  client?: string;
  revision: string;
  transport: string;
  log_level?: string;
  subscriptions: string[];
  age_s: number;
  idle_s?: number;
  is_busy: boolean;
}

/** A login of a user at a server. */
export interface ClientLogin {
  user: string;
  display_name?: string;
  servers: string[];
  issuer: string;
  scopes: string[];
  expires_in_s?: number;
  is_renewable: boolean;
}

export interface SessionsReport {
  store: string;
  sessions: ClientSession[];
  is_truncated: boolean;
  logins: ClientLogin[];
  has_more_logins: boolean;
}
