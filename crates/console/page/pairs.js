// The two wires of a call side by side: which message the hub made of which.

import { diffMessages } from "./diff.js";

/** @import { Json, RpcMessage, StoredEvent } from "./types.d.ts" */
/** @import { MessageDiff } from "./diff.js" */

/**
 * One line of the view: a message on one wire, and what it became or came from on the other.
 * @typedef {object} WirePair
 * @property {StoredEvent} [client]
 * @property {StoredEvent} [server]
 * @property {"client" | "server"} from the wire that it came in on
 * @property {MessageDiff} [diff]
 */

/**
 * Pairs the messages of a call. What the hub received on one wire goes with the next message of the same class that it
 * sent on the other; what is left without is the hub's own, or was not passed on.
 * @param {StoredEvent[]} events
 * @returns {WirePair[]}
 */
export function pairMessages(events) {
  const messages = events.filter(({ event }) => event.kind === "message");
  /** @type {Set<StoredEvent>} */
  const paired = new Set();
  /** @type {Array<{seq: number, pair: WirePair}>} */
  const pairs = [];
  messages.forEach((stored, at) => {
    if (stored.event.direction !== "received") return;
    const wire = stored.event.wire === "server" ? "server" : "client";
    const later = messages.slice(at + 1).filter(
      (other) => other.event.direction === "sent" && other.event.wire !== stored.event.wire && !paired.has(other),
    );
    const same = messageClass(stored.event.message);
    const sent = later.find((other) => messageClass(other.event.message) === same) ??
      later.find((other) => isTranslation(same, messageClass(other.event.message)));
    if (sent) paired.add(sent);
    paired.add(stored);
    pairs.push({ seq: stored.event.seq, pair: makePair(wire, stored, sent) });
  });
  for (const stored of messages) {
    if (paired.has(stored)) continue;
    const from = stored.event.wire === "server" ? "client" : "server";
    const pair = /** @type {WirePair} */ ({ from, [from === "client" ? "server" : "client"]: stored });
    pairs.push({ seq: stored.event.seq, pair });
  }
  return pairs.sort((a, b) => a.seq - b.seq).map(({ pair }) => pair);
}

/**
 * @param {"client" | "server"} from
 * @param {StoredEvent} received
 * @param {StoredEvent | undefined} sent
 * @returns {WirePair}
 */
function makePair(from, received, sent) {
  const [before, after] = [received.event.message, sent?.event.message];
  const diff = before && after
    ? diffMessages(/** @type {Json} */ (before), /** @type {Json} */ (after))
    : undefined;
  return from === "client"
    ? { client: received, server: sent, from, diff }
    : { client: sent, server: received, from, diff };
}

/**
 * @param {RpcMessage | undefined} message
 * @returns {string}
 */
function messageClass(message) {
  if (!message) return "unknown";
  if (message.method !== undefined) return `${message.id === undefined ? "notification" : "request"} ${message.method}`;
  if (message.error !== undefined) return "response";
  return isQuestion(message) ? "question" : "response";
}

/**
 * Whether a result is a question of the modern era.
 * @param {RpcMessage} message
 */
function isQuestion(message) {
  const result = message.result;
  return typeof result === "object" && result !== null && !Array.isArray(result) &&
    result.resultType === "input_required";
}

/**
 * Whether one class is what the other era makes of the other: a question is a result there and a request here.
 * @param {string} received
 * @param {string} sent
 */
function isTranslation(received, sent) {
  const asks = (/** @type {string} */ text) =>
    text === "question" || /^request (elicitation|sampling|roots)\//.test(text);
  if (asks(received) || asks(sent)) return asks(received) && asks(sent);
  // An answer to a question is a response in one era, and the call again in the other.
  const answers = (/** @type {string} */ text) => text === "response" || text.startsWith("request ");
  return answers(received) && answers(sent) && received.startsWith("request ") !== sent.startsWith("request ");
}

/**
 * What a message is, for its heading.
 * @param {RpcMessage | undefined} message
 * @returns {string}
 */
export function messageTitle(message) {
  if (!message) return "message";
  if (typeof message.method === "string") return message.method;
  if (message.error !== undefined) return "error";
  return isQuestion(message) ? "result · input required" : "result";
}
