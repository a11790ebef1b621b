// What is wrong with a value, by its schema: enough to help with a form, since the server checks everything again.

import { asList, asMap } from "./mcp_request.js";
import { MAX_DEPTH, fieldKind, pointer, resolved } from "./schema.js";

/** @import { Json, JsonMap } from "./types.d.ts" */
/** @import { SchemaProblem } from "./schema.js" */

/** Problems that are shown. */
const MAX_PROBLEMS = 50;

/**
 * Checks a value. Patterns are not checked: those of a hostile server could take for ever.
 * @param {Json | undefined} value
 * @param {JsonMap} root
 * @returns {SchemaProblem[]}
 */
export function checkValue(value, root) {
  /** @type {SchemaProblem[]} */
  const problems = [];
  check(value, root, root, "", 0, problems);
  return problems.slice(0, MAX_PROBLEMS);
}

/**
 * @param {Json | undefined} value
 * @param {Json | undefined} given
 * @param {JsonMap} root
 * @param {string} path
 * @param {number} depth
 * @param {SchemaProblem[]} problems
 */
function check(value, given, root, path, depth, problems) {
  if (value === undefined || depth > MAX_DEPTH + 3 || problems.length >= MAX_PROBLEMS) return;
  const add = (/** @type {string} */ text) => problems.push({ path, text });
  const { kind, schema, choices } = fieldKind(given, root, depth);
  const types = typesOf(schema);
  if (value === null && (types.includes("null") || isNullable(asMap(given)))) return;
  if (types.length > 0 && !types.some((type) => hasType(value, type))) {
    add(`must be ${types.map(withArticle).join(" or ")}`);
    return;
  }
  if (kind === "choice" && !choices.some((choice) => JSON.stringify(choice.value) === JSON.stringify(value))) {
    add("must be one of the values in the list");
  }
  if (schema.const !== undefined && JSON.stringify(schema.const) !== JSON.stringify(value)) add(`must be ${JSON.stringify(schema.const)}`);
  if (typeof value === "number") checkNumber(value, schema, add);
  if (typeof value === "string") checkString(value, schema, add);
  if (Array.isArray(value)) {
    checkCount(value.length, schema.minItems, schema.maxItems, "item", add);
    if (schema.uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length) add("has duplicate items");
    const items = Array.isArray(schema.items) ? undefined : schema.items;
    if (items !== undefined) value.slice(0, 1000).forEach((item, at) => check(item, items, root, pointer(path, at), depth + 1, problems));
  } else if (typeof value === "object" && value !== null) {
    checkMembers(value, schema, root, path, depth, problems);
  }
}

/**
 * @param {JsonMap} value
 * @param {JsonMap} schema
 * @param {JsonMap} root
 * @param {string} path
 * @param {number} depth
 * @param {SchemaProblem[]} problems
 */
function checkMembers(value, schema, root, path, depth, problems) {
  const properties = asMap(schema.properties);
  for (const name of asList(schema.required)) {
    if (typeof name === "string" && !Object.hasOwn(value, name)) problems.push({ path: pointer(path, name), text: "is needed" });
  }
  for (const [name, member] of Object.entries(value)) {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (inner !== undefined) check(member, inner, root, pointer(path, name), depth + 1, problems);
    else if (schema.additionalProperties === false) problems.push({ path: pointer(path, name), text: "is not a parameter" });
  }
}

/** @param {JsonMap} schema */
function typesOf(schema) {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  return types.filter((type) => typeof type === "string");
}

/** @param {JsonMap} given */
function isNullable(given) {
  return asList(given.anyOf ?? given.oneOf).some((option) => asMap(option).type === "null");
}

/**
 * @param {Json} value
 * @param {string} type
 */
function hasType(value, type) {
  switch (type) {
    case "null": return value === null;
    case "array": return Array.isArray(value);
    case "object": return typeof value === "object" && value !== null && !Array.isArray(value);
    case "integer": return typeof value === "number" && Number.isInteger(value);
    case "string": case "number": case "boolean": return typeof value === type;
    default: return true;
  }
}

/** @param {string} type */
function withArticle(type) {
  const words = /** @type {Readonly<Record<string, string>>} */ ({
    null: "null", array: "a list", object: "an object", integer: "a whole number", string: "a text", number: "a number",
    boolean: "true or false",
  });
  return words[type] ?? type;
}

/**
 * @param {number} value
 * @param {JsonMap} schema
 * @param {(text: string) => void} add
 */
function checkNumber(value, schema, add) {
  if (typeof schema.minimum === "number" && value < schema.minimum) add(`must be at least ${schema.minimum}`);
  if (typeof schema.maximum === "number" && value > schema.maximum) add(`must be at most ${schema.maximum}`);
  if (typeof schema.exclusiveMinimum === "number" && value <= schema.exclusiveMinimum) add(`must be above ${schema.exclusiveMinimum}`);
  if (typeof schema.exclusiveMaximum === "number" && value >= schema.exclusiveMaximum) add(`must be below ${schema.exclusiveMaximum}`);
}

/** What a text of a format looks like, roughly. @type {Readonly<Record<string, RegExp>>} */
const FORMATS = {
  email: /^[^\s@]+@[^\s@]+$/, uri: /^[a-z][a-z0-9+.-]*:\S*$/i, date: /^\d{4}-\d{2}-\d{2}$/,
  "date-time": /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i,
};

/**
 * @param {string} value
 * @param {JsonMap} schema
 * @param {(text: string) => void} add
 */
function checkString(value, schema, add) {
  checkCount([...value].length, schema.minLength, schema.maxLength, "character", add);
  const format = typeof schema.format === "string" && Object.hasOwn(FORMATS, schema.format) ? schema.format : "";
  if (format && !FORMATS[format]?.test(value)) add(`does not look like ${format === "email" ? "an email address" : `a ${format}`}`);
}

/**
 * @param {number} length
 * @param {Json | undefined} least
 * @param {Json | undefined} most
 * @param {string} what
 * @param {(text: string) => void} add
 */
function checkCount(length, least, most, what, add) {
  if (typeof least === "number" && length < least) add(`needs at least ${least} ${what}${least === 1 ? "" : "s"}`);
  if (typeof most === "number" && length > most) add(`has more than ${most} ${what}${most === 1 ? "" : "s"}`);
}

/**
 * The bounds of a value, for a hint.
 * @param {JsonMap} given
 * @param {JsonMap} root
 */
export function boundsText(given, root) {
  const schema = resolved(given, root);
  const parts = [
    typeof schema.format === "string" ? schema.format : "",
    typeof schema.minimum === "number" ? `≥ ${schema.minimum}` : "", typeof schema.maximum === "number" ? `≤ ${schema.maximum}` : "",
    typeof schema.exclusiveMinimum === "number" ? `> ${schema.exclusiveMinimum}` : "",
    typeof schema.exclusiveMaximum === "number" ? `< ${schema.exclusiveMaximum}` : "",
    typeof schema.pattern === "string" ? `pattern ${schema.pattern}` : "",
  ];
  return parts.filter(Boolean).join(", ");
}
