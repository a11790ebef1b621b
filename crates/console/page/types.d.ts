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
