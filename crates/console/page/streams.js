// Subscriptions of clients of 2026-07-28: each is a request whose response comes at its end.

import { parseTime } from "./format.js";

/** @import { HubEvent, Json } from "./types.d.ts" */

/** The streams that are kept. */
const MAX_STREAMS = 500;

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const CLIENT = "io.modelcontextprotocol/clientInfo";

/**
 * @typedef {object} ClientStream
 * @property {string} client the id of its client, if it has one
 * @property {string} name of the client
 * @property {string} id of its request
 * @property {number} start
 * @property {number} last when it was last heard of
 * @property {number | undefined} end
 */

/**
 * Takes a message that belongs to no call.
 * @param {ClientStream[]} streams
 * @param {HubEvent} event
 */
export function takeStream(streams, event) {
  const { message } = event;
  if (event.wire !== "client" || !message) return;
  const time = parseTime(event.time);
  if (event.direction === "received" && message.method === "subscriptions/listen" && message.id !== undefined) {
    const name = member(member(member(message.params, "_meta"), CLIENT), "name");
    streams.push({
      client: event.client ?? "", name: typeof name === "string" ? name : "", id: JSON.stringify(message.id), start: time, last: time, end: undefined,
    });
    if (streams.length > MAX_STREAMS) streams.splice(0, MAX_STREAMS / 10);
    return;
  }
  const about = member(member(message.method === undefined ? message.result : message.params, "_meta"), SUBSCRIPTION);
  if (event.direction !== "sent" || about === undefined) return;
  const id = JSON.stringify(about);
  const stream = streams.findLast((each) => each.end === undefined && each.id === id && each.client === (event.client ?? ""));
  if (!stream) return;
  stream.last = time;
  if (message.method === undefined) stream.end = time;
}

/**
 * @param {Json | undefined} value
 * @param {string} name
 * @returns {Json | undefined}
 */
function member(value, name) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
