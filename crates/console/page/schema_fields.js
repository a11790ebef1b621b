// The fields of a form, one for each kind of value. A field without a value is left out of what is sent.

import { button, element } from "./dom.js";
import { asList, asMap, asText } from "./mcp_request.js";
import { MAX_DEPTH, fieldKind, fromEntries, pointer } from "./schema.js";
import { boundsText } from "./schema_check.js";

/** @import { Json, JsonMap } from "./types.d.ts" */
/** @import { FieldKind } from "./schema.js" */

/**
 * @typedef {object} FormContext
 * @property {JsonMap} root the schema, for its references
 * @property {string} prefix of the ids
 * @property {number} count
 * @property {Map<string, {control: HTMLElement, slot: HTMLElement}>} slots where the problem of each field is shown
 * @property {Map<string, string>} invalid the fields with text that is not JSON
 * @property {() => void} changed
 */

/**
 * @typedef {object} FormField
 * @property {HTMLElement} node
 * @property {() => Json | undefined} read
 * @property {(value: Json | undefined) => void} write
 */

/** The fields of a form; a schema that refers to itself has any number, and what is beyond is edited as JSON. */
const MAX_FIELDS = 1000;

/** The items of a list that are shown. */
const MAX_ITEMS = 200;

/** A text of this length gets several lines. */
const LONG_TEXT = 120;

/**
 * Makes the field of a value.
 * @param {Json | undefined} given
 * @param {FormContext} context
 * @param {string} path
 * @param {number} depth
 * @param {{label?: string, needed?: boolean}} [about]
 * @returns {FormField}
 */
export function makeField(given, context, path, depth, about = {}) {
  const kind = fieldKind(given, context.root, context.count < MAX_FIELDS ? depth : MAX_DEPTH);
  switch (kind.kind) {
    case "object": return objectField(kind.schema, context, path, depth, about);
    case "array": return arrayField(kind.schema, context, path, depth, about);
    case "choices": return choicesField(kind, context, path, about);
    case "choice": return selectField(kind, kind.choices, context, path, about);
    case "boolean": {
      const choices = [{ value: true, label: "true" }, { value: false, label: "false" }];
      return selectField(kind, choices, context, path, about);
    }
    case "json": return jsonField(kind, context, path, about);
    case "number": return textField(kind, context, path, about, (text) => (text.trim() === "" ? undefined : numberOf(text)));
    case "string": return textField(kind, context, path, about, (text) => (text === "" ? undefined : text));
  }
}

/** @param {string} text */
function numberOf(text) {
  const number = Number(text);
  // A text that is no number stays as it is, and is reported as one.
  return Number.isFinite(number) ? number : text;
}

/**
 * A control with its label, its description and the place for its problem.
 * @param {HTMLElement} control
 * @param {JsonMap} schema
 * @param {FormContext} context
 * @param {string} path
 * @param {{label?: string, needed?: boolean}} about
 */
function labelled(control, schema, context, path, about) {
  const id = `${context.prefix}-${context.count += 1}`;
  const name = about.label ?? path.slice(path.lastIndexOf("/") + 1);
  const slot = element("p", { class: "field-problem", id: `${id}-problem` });
  const help = [asText(schema.description), boundsText(schema, context.root)].filter(Boolean).join("  ·  ");
  control.id = id;
  control.setAttribute("aria-describedby", `${id}-problem${help ? ` ${id}-help` : ""}`);
  context.slots.set(path, { control, slot });
  const title = asText(schema.title);
  const label = element("label", { for: id }, element("bdi", {}, title || name),
    title && title !== name ? element("code", { class: "quiet" }, ` ${name}`) : undefined,
    about.needed ? element("span", { class: "needed", title: "needed" }, " *") : undefined,
    element("span", { class: "type" }, typeText(schema)));
  return element("div", { class: "field" }, label, control,
    help ? element("p", { class: "help", id: `${id}-help` }, help) : undefined, slot);
}

/** @param {JsonMap} schema */
function typeText(schema) {
  return Array.isArray(schema.type) ? schema.type.join(" | ") : asText(schema.type);
}

/**
 * @param {FieldKind} kind
 * @param {FormContext} context
 * @param {string} path
 * @param {{label?: string, needed?: boolean}} about
 * @param {(text: string) => Json | undefined} parse
 * @returns {FormField}
 */
function textField({ kind, schema }, context, path, about, parse) {
  const isLong = kind === "string" && typeof schema.maxLength === "number" && schema.maxLength > LONG_TEXT;
  const examples = asList(schema.examples).filter((example) => typeof example === "string" || typeof example === "number");
  const attributes = { autocomplete: "off", spellcheck: "false", placeholder: examples.length > 0 ? `e.g. ${examples[0]}` : undefined };
  const make = (/** @type {boolean} */ several) => (several ? element("textarea", attributes) : element("input", { type: "text", ...attributes }));
  /** @type {HTMLInputElement | HTMLTextAreaElement} */
  let control = make(isLong);
  if (kind === "number") control.inputMode = "decimal";
  // An empty text that was given as one, and not by leaving the field empty.
  let isEmptyText = false;
  const listen = () => control.addEventListener("input", () => {
    isEmptyText = false;
    context.changed();
  });
  const node = labelled(control, schema, context, path, about);
  listen();
  return {
    node,
    read: () => (isEmptyText ? "" : parse(control.value)),
    write: (value) => {
      isEmptyText = value === "";
      const text = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
      if (control instanceof HTMLInputElement && text.includes("\n")) {
        const larger = make(true);
        larger.id = control.id;
        larger.setAttribute("aria-describedby", control.getAttribute("aria-describedby") ?? "");
        control.replaceWith(larger);
        control = larger;
        const slot = context.slots.get(path)?.slot;
        if (slot) context.slots.set(path, { control, slot });
        listen();
      }
      if (control.value !== text) control.value = text;
    },
  };
}

/**
 * @param {FieldKind} kind
 * @param {Array<{value: Json, label: string}>} choices
 * @param {FormContext} context
 * @param {string} path
 * @param {{label?: string, needed?: boolean}} about
 * @returns {FormField}
 */
function selectField({ schema }, choices, context, path, about) {
  const control = element("select", {}, element("option", { value: "" }, "not set"),
    ...choices.map(({ label }, at) => element("option", { value: at }, label)));
  /** A value that is none of the choices. @type {Json | undefined} */
  let other;
  control.addEventListener("change", () => {
    other = undefined;
    context.changed();
  });
  return {
    node: labelled(control, schema, context, path, about),
    read: () => (control.value === "" ? other : choices[Number(control.value)]?.value),
    write: (value) => {
      const at = value === undefined ? -1 : choices.findIndex((choice) => JSON.stringify(choice.value) === JSON.stringify(value));
      other = at < 0 ? value : undefined;
      control.value = at < 0 ? "" : String(at);
    },
  };
}

/**
 * @param {FieldKind} kind
 * @param {FormContext} context
 * @param {string} path
 * @param {{label?: string, needed?: boolean}} about
 * @returns {FormField}
 */
function jsonField({ schema }, context, path, about) {
  const control = element("textarea", { class: "mono", spellcheck: "false", placeholder: "JSON" });
  const parsed = () => {
    context.invalid.delete(path);
    if (control.value.trim() === "") return undefined;
    try {
      return /** @type {Json} */ (JSON.parse(control.value));
    } catch {
      context.invalid.set(path, "is not JSON");
      return undefined;
    }
  };
  control.addEventListener("input", () => context.changed());
  return {
    node: labelled(control, schema, context, path, about),
    read: parsed,
    write: (value) => { control.value = value === undefined ? "" : JSON.stringify(value, null, 2); },
  };
}

/**
 * @param {JsonMap} schema
 * @param {FormContext} context
 * @param {string} path
 * @param {{label?: string, needed?: boolean}} about
 */
function group(schema, context, path, about) {
  const id = `${context.prefix}-${context.count += 1}`;
  const slot = element("p", { class: "field-problem", id: `${id}-problem` });
  const name = about.label ?? path.slice(path.lastIndexOf("/") + 1);
  const node = element("fieldset", { class: "field-group", "aria-describedby": `${id}-problem` },
    element("legend", {}, element("bdi", {}, asText(schema.title) || name),
      about.needed ? element("span", { class: "needed", title: "needed" }, " *") : undefined,
      element("span", { class: "type" }, typeText(schema))),
    schema.description ? element("p", { class: "help" }, asText(schema.description)) : undefined);
  context.slots.set(path, { control: node, slot });
  return { node, slot };
}

/**
 * @param {JsonMap} schema
 * @param {FormContext} context
 * @param {string} path
 * @param {number} depth
 * @param {{label?: string, needed?: boolean}} about
 * @returns {FormField}
 */
function objectField(schema, context, path, depth, about) {
  const required = new Set(asList(schema.required));
  const fields = Object.entries(asMap(schema.properties)).map(([name, inner]) => /** @type {const} */ ([
    name, makeField(inner, context, pointer(path, name), depth + 1, { label: name, needed: required.has(name) }),
  ]));
  const known = new Set(fields.map(([name]) => name));
  /** Members that have no field. @type {Array<[string, Json]>} */
  let rest = [];
  /** A value that is no object at all. @type {Json | undefined} */
  let other;
  const outer = depth === 0 ? undefined : group(schema, context, path, about);
  const node = outer?.node ?? element("div", { class: "fields" });
  node.append(...fields.map(([, field]) => field.node));
  if (outer) node.append(outer.slot);
  let isSet = depth === 0 || about.needed === true;
  return {
    node,
    read: () => {
      if (other !== undefined) return other;
      const entries = fields.flatMap(([name, field]) => {
        const value = field.read();
        return value === undefined ? [] : [/** @type {[string, Json]} */ ([name, value])];
      });
      return entries.length + rest.length > 0 || isSet ? fromEntries([...entries, ...rest]) : undefined;
    },
    write: (value) => {
      const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
      other = isMap ? undefined : value;
      isSet = depth === 0 || about.needed === true || isMap;
      const map = asMap(value);
      rest = Object.entries(map).filter(([name]) => !known.has(name));
      for (const [name, field] of fields) field.write(Object.hasOwn(map, name) ? map[name] : undefined);
    },
  };
}

/**
 * @param {JsonMap} schema
 * @param {FormContext} context
 * @param {string} path
 * @param {number} depth
 * @param {{label?: string, needed?: boolean}} about
 * @returns {FormField}
 */
function arrayField(schema, context, path, depth, about) {
  const { node, slot } = group(schema, context, path, about);
  const list = element("div", { class: "items" });
  /** @type {FormField[]} */
  let items = [];
  /** Items beyond those that are shown. @type {Json[]} */
  let rest = [];
  let isSet = false;
  /** A value that is no list. @type {Json | undefined} */
  let other;
  const build = (/** @type {Array<Json | undefined>} */ values) => {
    items = values.slice(0, MAX_ITEMS).map((value, at) => {
      const item = makeField(schema.items, context, pointer(path, at), depth + 1, { label: String(at + 1), needed: true });
      item.write(value);
      return item;
    });
    list.replaceChildren(...items.map((item, at) => element("div", { class: "item" }, item.node,
      button("×", `Remove item ${at + 1}`, () => {
        build(items.map((each) => each.read()).filter((_, place) => place !== at));
        isSet = items.length > 0;
        context.changed();
        add.focus();
      }, { class: "icon-button", "aria-label": `Remove item ${at + 1}` }))));
  };
  const add = button("Add an item", "Add an item to the list", () => {
    other = undefined;
    isSet = true;
    build([...items.map((item) => item.read()), undefined]);
    context.changed();
    const last = list.lastElementChild?.querySelector("input, select, textarea");
    if (last instanceof HTMLElement) last.focus();
  });
  node.append(list, add, slot);
  return {
    node,
    read: () => other ?? (isSet || about.needed ? [...items.map((item) => item.read() ?? null), ...rest] : undefined),
    write: (value) => {
      other = value === undefined || Array.isArray(value) ? undefined : value;
      isSet = Array.isArray(value);
      rest = asList(value).slice(MAX_ITEMS);
      build(asList(value));
    },
  };
}

/**
 * Several values of a list of choices.
 * @param {FieldKind} kind
 * @param {FormContext} context
 * @param {string} path
 * @param {{label?: string, needed?: boolean}} about
 * @returns {FormField}
 */
function choicesField({ schema, choices }, context, path, about) {
  const { node, slot } = group(schema, context, path, about);
  let isSet = false;
  const boxes = choices.map(({ label }) => {
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => {
      isSet = true;
      context.changed();
    });
    node.append(element("label", { class: "choice" }, box, ` ${label}`));
    return box;
  });
  node.append(slot);
  return {
    node,
    read: () => {
      const chosen = choices.filter((_, at) => boxes[at]?.checked).map(({ value }) => value);
      return chosen.length > 0 || isSet || about.needed ? chosen : undefined;
    },
    write: (value) => {
      isSet = Array.isArray(value);
      const wanted = new Set(asList(value).map((item) => JSON.stringify(item)));
      choices.forEach((choice, at) => {
        const box = boxes[at];
        if (box) box.checked = wanted.has(JSON.stringify(choice.value));
      });
    },
  };
}
