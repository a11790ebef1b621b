// JSON Schema as far as forms need it: what kind of field a value gets, and what is wrong with a value.

import { asList, asMap, asText } from "./mcp_request.js";

/** @import { Json, JsonMap } from "./types.d.ts" */

/** How deep forms go; what is deeper is edited as JSON. */
export const MAX_DEPTH = 5;

/** Required members whose defaults are looked up for one form: a schema that refers to itself has any number. */
const MAX_DEFAULTS = 500;

/** References that are followed for one schema. */
const MAX_REFERENCES = 8;

/**
 * @typedef {{path: string, text: string}} SchemaProblem
 */

/**
 * The kind of a field.
 * @typedef {{
 *   kind: "string" | "number" | "boolean" | "choice" | "choices" | "array" | "object" | "json",
 *   schema: JsonMap,
 *   choices: Array<{value: Json, label: string}>,
 * }} FieldKind
 */

/**
 * Follows references and single alternatives.
 * @param {Json | undefined} given
 * @param {JsonMap} root
 * @returns {JsonMap}
 */
export function resolved(given, root) {
  let schema = asMap(given);
  for (let followed = 0; followed < MAX_REFERENCES; followed += 1) {
    if (typeof schema.$ref === "string") {
      const { $ref, ...rest } = schema;
      schema = { ...asMap(atPointer(root, $ref)), ...rest };
      continue;
    }
    const options = asList(schema.anyOf ?? schema.oneOf).map((option) => resolvedReference(option, root));
    const others = options.filter((option) => option.type !== "null");
    if (options.length === 0 || others.length !== 1 || others.length === options.length) break;
    // A value that may be null, too.
    const { anyOf: _any, oneOf: _one, ...rest } = schema;
    schema = { ...others[0], ...rest };
  }
  return schema;
}

/**
 * @param {Json} option
 * @param {JsonMap} root
 */
function resolvedReference(option, root) {
  const schema = asMap(option);
  return typeof schema.$ref === "string" ? asMap(atPointer(root, schema.$ref)) : schema;
}

/**
 * @param {JsonMap} root
 * @param {string} reference
 * @returns {Json | undefined}
 */
function atPointer(root, reference) {
  if (!reference.startsWith("#")) return undefined;
  /** @type {Json | undefined} */
  let found = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = decodedPart(part);
    if (name === undefined) return undefined;
    const map = asMap(found);
    found = Object.hasOwn(map, name) ? map[name] : undefined;
  }
  return found;
}

/**
 * Decodes a part of a reference; undefined if it is malformed.
 * @param {string} part
 */
function decodedPart(part) {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}

/**
 * Decides how a value is edited.
 * @param {Json | undefined} given
 * @param {JsonMap} root
 * @param {number} depth
 * @returns {FieldKind}
 */
export function fieldKind(given, root, depth) {
  const schema = resolved(given, root);
  const choices = choicesOf(schema);
  if (choices.length > 0) return { kind: "choice", schema, choices };
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== "null");
  const type = types.length === 1 ? types[0] : undefined;
  if (type === "string") return { kind: "string", schema, choices: [] };
  if (type === "number" || type === "integer") return { kind: "number", schema: { ...schema, type }, choices: [] };
  if (type === "boolean") return { kind: "boolean", schema, choices: [] };
  if (depth < MAX_DEPTH && type === "array" && !Array.isArray(schema.items)) {
    const each = choicesOf(resolved(schema.items, root));
    if (each.length > 0) return { kind: "choices", schema, choices: each };
    return { kind: "array", schema, choices: [] };
  }
  const hasFields = Object.keys(asMap(schema.properties)).length > 0;
  const hasAlternatives = schema.oneOf !== undefined || schema.anyOf !== undefined || schema.allOf !== undefined;
  if (depth < MAX_DEPTH && hasFields && !hasAlternatives && (type === "object" || type === undefined)) {
    return { kind: "object", schema, choices: [] };
  }
  return { kind: "json", schema, choices: [] };
}

/**
 * The values to choose from: those of `enum`, or of alternatives that each have one value.
 * @param {JsonMap} schema
 */
function choicesOf(schema) {
  const names = asList(schema.enumNames);
  const listed = asList(schema.enum);
  if (listed.length > 0) {
    return listed.map((value, at) => ({ value, label: asText(names[at]) || choiceLabel(value) }));
  }
  const options = asList(schema.oneOf ?? schema.anyOf).map(asMap);
  if (options.length === 0 || !options.every((option) => Object.hasOwn(option, "const"))) return [];
  return options.map((option) => ({ value: option.const ?? null, label: asText(option.title) || choiceLabel(option.const ?? null) }));
}

/** @param {Json} value */
function choiceLabel(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * The value that a form begins with: what the defaults say.
 * @param {Json | undefined} given
 * @param {JsonMap} root
 * @param {number} [depth]
 * @param {{left: number}} [budget]
 * @returns {Json | undefined}
 */
export function defaultOf(given, root, depth = 0, budget = { left: MAX_DEFAULTS }) {
  if (budget.left <= 0) return undefined;
  budget.left -= 1;
  const { kind, schema } = fieldKind(given, root, depth);
  if (schema.default !== undefined) return schema.default;
  if (kind !== "object") return undefined;
  const required = new Set(asList(schema.required));
  const entries = Object.entries(asMap(schema.properties)).flatMap(([name, inner]) => {
    const value = required.has(name) ? defaultOf(inner, root, depth + 1, budget) : resolved(inner, root).default;
    return value === undefined ? [] : [/** @type {[string, Json]} */ ([name, value])];
  });
  return fromEntries(entries);
}

/**
 * Makes an object whose members are its own, whatever their names.
 * @param {Array<[string, Json]>} entries
 * @returns {JsonMap}
 */
export function fromEntries(entries) {
  const made = /** @type {JsonMap} */ ({});
  for (const [name, value] of entries) {
    Object.defineProperty(made, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return made;
}

/**
 * The place of a member, as a JSON pointer.
 * @param {string} path
 * @param {string | number} name
 */
export function pointer(path, name) {
  return `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
