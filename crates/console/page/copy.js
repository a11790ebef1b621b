// A call for elsewhere: as a command of curl, as `trunkline call`, as JSON, and as a record file for a bug report.

import { announce, button } from "./dom.js";
import { download, recordHead } from "./record.js";

/** @import { Call, HubEvent, Json, RpcMessage } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

const REVISION = "2026-07-28";

/** The commands of `trunkline` that make a request, and the parameter that names what it is for. */
const COMMANDS = /** @type {Readonly<Record<string, {command: string, target: string}>>} */ ({
  "tools/call": { command: "call", target: "name" },
  "prompts/get": { command: "prompt", target: "name" },
  "resources/read": { command: "read", target: "uri" },
});

/**
 * The buttons for a call.
 * @param {Call} call
 * @param {Store} store
 * @param {string} endpoint
 */
export function copyMenu(call, store, endpoint) {
  const request = clientRequest(call);
  const curl = request && asCurl(request, endpoint);
  const command = request && asCommand(request, endpoint);
  return [
    button("curl", "Copy as a curl command", () => void copyText(curl ?? "", "curl command"), { disabled: !curl, id: "copy-curl" }),
    button("trunkline call", "Copy as a trunkline command", () => void copyText(command ?? "", "command"), { disabled: !command, id: "copy-command" }),
    button("JSON", "Copy the messages as JSON", () => void copyText(asJson(call), "JSON"), { id: "copy-json" }),
    button("Export", "Save this call as a record file, for a bug report", () => exportCall(call, store), { id: "export-call" }),
  ];
}

/**
 * The request of the client, if its message was copied.
 * @param {Call} call
 * @returns {RpcMessage | undefined}
 */
export function clientRequest(call) {
  const found = call.events.find(({ event }) =>
    event.wire === "client" && event.direction === "received" && event.message?.method !== undefined &&
    event.message.id !== undefined);
  return found?.event.message;
}

/**
 * @param {RpcMessage} request
 * @returns {{[name: string]: Json}}
 */
function ownParams(request) {
  const params = request.params;
  if (typeof params !== "object" || params === null || Array.isArray(params)) return {};
  // The revision, the capabilities and the progress token are of that client; so are its answers.
  const { _meta: _, inputResponses: _answers, requestState: _state, ...rest } = params;
  return rest;
}

/** @param {string} text */
export function shellQuote(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The same request of the modern era, which needs no session.
 * @param {RpcMessage} request
 * @param {string} endpoint
 * @returns {string}
 */
export function asCurl(request, endpoint) {
  const method = request.method ?? "";
  const params = ownParams(request);
  const _meta = { "io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {} };
  const message = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } };
  const headers = [
    "Content-Type: application/json", "Accept: application/json, text/event-stream",
    `MCP-Protocol-Version: ${REVISION}`, `Mcp-Method: ${method}`,
  ];
  const target = params[COMMANDS[method]?.target ?? ""];
  if (typeof target === "string") headers.push(`Mcp-Name: ${headerValue(target)}`);
  const options = headers.map((header) => `-H ${shellQuote(header)}`);
  return `curl -sS ${shellQuote(endpoint)} ${options.join(" ")} -d ${shellQuote(JSON.stringify(message))}`;
}

/**
 * A value as headers carry it: what is not plain ASCII goes as base64.
 * @param {string} value
 */
function headerValue(value) {
  if (/^[!-~]([ -~]*[!-~])?$/.test(value) && !value.startsWith("=?")) return value;
  const bytes = Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte));
  return `=?base64?${btoa(bytes.join(""))}?=`;
}

/**
 * @param {RpcMessage} request
 * @param {string} endpoint
 * @returns {string | undefined}
 */
export function asCommand(request, endpoint) {
  const known = COMMANDS[request.method ?? ""];
  const params = ownParams(request);
  const target = params[known?.target ?? ""];
  if (!known || typeof target !== "string") return undefined;
  const words = ["trunkline", known.command, shellQuote(endpoint), shellQuote(target)];
  const given = params.arguments;
  if (known.command === "call") words.push("--json-args", shellQuote(JSON.stringify(given ?? {})));
  else if (typeof given === "object" && given !== null) {
    for (const [name, value] of Object.entries(given)) words.push(shellQuote(`${name}=${value}`));
  }
  return words.join(" ");
}

/** @param {Call} call */
function asJson(call) {
  const { id, client, method, name, server, item, outcome, micros, serverMicros, error } = call;
  const messages = call.events.filter(({ event }) => event.kind === "message").map(({ event }) => event);
  const whole = {
    call: id, client, method, name, server, item, outcome, micros, server_micros: serverMicros,
    error: error || undefined, messages,
  };
  return JSON.stringify(whole, null, 2);
}

/**
 * Saves one call with what is known of its client and server.
 * @param {Call} call
 * @param {Store} store
 */
function exportCall(call, store) {
  const last = call.events.at(-1)?.event.seq ?? call.seq;
  const around = store.notes.filter(({ event }) => event.call === undefined && concerns(event, call) &&
    (event.kind !== "stderr" && event.kind !== "log" || (event.seq >= call.seq && event.seq <= last)));
  const lines = new Map([...around, ...call.events].map(({ event, line }) => [event.seq, line]));
  const sorted = [...lines].sort(([a], [b]) => a - b).map(([, line]) => line);
  download(`call-${call.id}.jsonl`, [recordHead(), ...sorted].map((line) => `${line}\n`));
  announce("Saved. Look through the file before you share it: arguments and results are in it.");
}

/**
 * @param {HubEvent} event
 * @param {Call} call
 */
function concerns(event, call) {
  const clients = new Set(call.events.map((stored) => stored.event.client));
  return event.server !== undefined ? event.server === call.server : event.client !== undefined && clients.has(event.client);
}

/**
 * @param {string} text
 * @param {string} what
 */
export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`Copied the ${what}`);
  } catch {
    // Browsers allow the clipboard only to pages of the loopback and of HTTPS.
    announce("This browser does not let the page use the clipboard");
  }
}
