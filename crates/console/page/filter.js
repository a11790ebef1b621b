// The filter: `server:git client:cursor status:error >500ms` and free text, each part narrowing the rest.

import { outcomeText } from "./format.js";

/** @import { Call } from "./types.d.ts" */

/**
 * @typedef {object} Filter
 * @property {(call: Call) => boolean} matches
 * @property {string[]} problems what of the text means nothing
 * @property {boolean} isEmpty
 */

/** @type {Readonly<Record<string, (call: Call) => string[]>>} */
const FIELDS = {
  server: (call) => [call.server],
  client: (call) => [call.client],
  method: (call) => [call.method],
  name: (call) => [call.name, call.item],
  tool: (call) => (call.method === "tools/call" ? [call.name, call.item] : []),
  status: (call) => [call.outcome, outcomeText(call.outcome)],
  revision: (call) => call.events.flatMap(({ event }) => event.revision ?? []),
  id: (call) => [call.id],
};

/** @type {Readonly<Record<string, number>>} */
const UNITS = { us: 1, µs: 1, ms: 1000, s: 1_000_000, m: 60_000_000 };

/** @type {ReadonlyArray<readonly [string, string]>} */
export const FILTER_HELP = [
  ["server:git  client:cursor", "Part of a name"], ["tool:add  method:resources/read", "What was called"],
  ["status:error  status:running", "The outcome"], [">500ms  <2s", "The duration"],
  ["\"two words\"  -server:git", "Text in the messages; all but"],
];

/**
 * Reads a filter.
 * @param {string} text
 * @returns {Filter}
 */
export function parseFilter(text) {
  /** @type {Array<(call: Call) => boolean>} */
  const tests = [];
  /** @type {string[]} */
  const problems = [];
  for (const word of words(text)) {
    const negated = word.text.startsWith("-") && word.text.length > 1 && !word.quoted;
    const test = parseWord(negated ? word.text.slice(1) : word.text, word.quoted, problems);
    if (test) tests.push(negated ? (call) => !test(call) : test);
  }
  return { matches: (call) => tests.every((test) => test(call)), problems, isEmpty: tests.length === 0 };
}

/**
 * @param {string} text
 * @returns {Array<{text: string, quoted: boolean}>}
 */
function words(text) {
  return [...text.matchAll(/"([^"]*)"?|((?:[^\s":]+:)?"[^"]*"?|\S+)/g)].map((found) => {
    const quoted = found[1] !== undefined;
    return { text: quoted ? (found[1] ?? "") : (found[2] ?? "").replaceAll('"', ""), quoted };
  }).filter((word) => word.text !== "");
}

/**
 * @param {string} word
 * @param {boolean} quoted
 * @param {string[]} problems
 * @returns {((call: Call) => boolean) | undefined}
 */
function parseWord(word, quoted, problems) {
  if (quoted) return freeText(word);
  const bound = /^([<>])(\d+(?:\.\d+)?)(us|µs|ms|s|m)?$/.exec(word);
  if (bound) {
    const micros = Number(bound[2]) * (UNITS[bound[3] ?? "ms"] ?? 1000);
    const longer = bound[1] === ">";
    return (call) => call.micros !== undefined && (longer ? call.micros > micros : call.micros < micros);
  }
  if (/^[<>]/.test(word)) {
    problems.push(`${word}: a duration is written as >500ms or <2s`);
    return undefined;
  }
  const colon = word.indexOf(":");
  const field = FIELDS[word.slice(0, Math.max(colon, 0)).toLowerCase()];
  if (!field) return freeText(word);
  const wanted = word.slice(colon + 1).toLowerCase();
  // While it is typed, `server:` has no value yet.
  if (wanted === "") return undefined;
  if (field === FIELDS.status && wanted === "error") {
    return (call) => call.outcome === "error" || call.outcome === "tool_error";
  }
  return (call) => field(call).some((value) => value.toLowerCase().includes(wanted));
}

/**
 * Finds text anywhere in a call, its messages included.
 * @param {string} text
 * @returns {(call: Call) => boolean}
 */
function freeText(text) {
  const wanted = text.toLowerCase();
  return (call) =>
    `${call.name} ${call.method} ${call.server} ${call.client} ${call.error}`.toLowerCase().includes(wanted) ||
    call.events.some(({ line }) => line.toLowerCase().includes(wanted));
}
