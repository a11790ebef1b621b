// MCP requests of this page: the console passes them to the hub, and their messages come back as lines.

import { api } from "./session.js";
import { LineSplitter } from "./stream.js";

/** @import { Json, JsonMap, RpcMessage } from "./types.d.ts" */

/** A request without even a blank line for this long is dead. */
const SILENCE = 60_000;

/** An error that the hub or a server answered with. */
export class McpError extends Error {
  /** @param {RpcMessage} response */
  constructor(response) {
    const error = asMap(response.error);
    super(typeof error.message === "string" ? error.message : "an error without a message");
    this.code = typeof error.code === "number" ? error.code : 0;
    this.data = error.data;
  }
}

/**
 * @typedef {object} McpOptions
 * @property {AbortSignal} [signal] cancels the request
 * @property {(message: RpcMessage) => void} [onMessage] is given the notifications before the response
 * @property {string} [args] the arguments as JSON text, which is sent as it is written
 */

/**
 * Makes a request, and returns its result.
 * @param {string} method
 * @param {JsonMap} params
 * @param {McpOptions} [options]
 * @returns {Promise<JsonMap>}
 * @throws {McpError} if the response is an error
 */
export async function mcpRequest(method, params, { signal, onMessage, args } = {}) {
  const quiet = new AbortController();
  const signals = signal ? [signal, quiet.signal] : [quiet.signal];
  let timer = setTimeout(() => quiet.abort(), SILENCE);
  try {
    const response = await api("requests", { method: "POST", body: bodyOf(method, params, args), signal: AbortSignal.any(signals) });
    if (!response.body) throw new Error("no body");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const splitter = new LineSplitter();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("The hub ended the request without a response.");
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), SILENCE);
      for (const line of splitter.push(value)) {
        const message = /** @type {RpcMessage} */ (JSON.parse(line));
        if (message.method === undefined) {
          if (message.error !== undefined) throw new McpError(message);
          return asMap(message.result);
        }
        onMessage?.(message);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Reads all parts of a list.
 * @param {string} method
 * @param {string} member
 * @returns {Promise<JsonMap[]>}
 */
export async function mcpList(method, member) {
  /** @type {JsonMap[]} */
  const items = [];
  let cursor = "";
  for (let part = 0; part < MAX_PARTS; part += 1) {
    const result = await mcpRequest(method, cursor ? { cursor } : {});
    items.push(...asList(result[member]).map(asMap));
    cursor = typeof result.nextCursor === "string" ? result.nextCursor : "";
    if (!cursor || items.length >= MAX_ITEMS) break;
  }
  return items.slice(0, MAX_ITEMS);
}

/** The parts of a list that are read, and its items. */
const MAX_PARTS = 200;
export const MAX_ITEMS = 10_000;

/**
 * @param {string} method
 * @param {JsonMap} params
 * @param {string | undefined} args
 */
function bodyOf(method, params, args) {
  if (args === undefined) return JSON.stringify({ method, params });
  const rest = JSON.stringify({ ...params, arguments: undefined }).slice(1, -1);
  return `{"method":${JSON.stringify(method)},"params":{${rest}${rest ? "," : ""}"arguments":${args}}}`;
}

/**
 * An object, or an empty one in place of anything else.
 * @param {Json | undefined} value
 * @returns {JsonMap}
 */
export function asMap(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

/**
 * @param {Json | undefined} value
 * @returns {Json[]}
 */
export function asList(value) {
  return Array.isArray(value) ? value : [];
}

/**
 * @param {Json | undefined} value
 * @returns {string}
 */
export function asText(value) {
  return typeof value === "string" ? value : "";
}
