// A form made from a JSON Schema. Names and descriptions are texts of a server, and become text nodes only.

import { element } from "./dom.js";
import { makeField } from "./schema_fields.js";
import { defaultOf, fieldKind } from "./schema.js";

/** @import { Json, JsonMap } from "./types.d.ts" */
/** @import { SchemaProblem } from "./schema.js" */
/** @import { FormContext } from "./schema_fields.js" */

/** Grows with every form, so that ids are unique in the page. */
let forms = 0;

export class SchemaForm {
  element = element("div", { class: "schema-form" });
  #field;
  /** @type {FormContext} */
  #context;

  /**
   * @param {JsonMap} schema
   * @param {() => void} onChange
   * @param {string} [nothing] what is shown where there are no fields
   */
  constructor(schema, onChange, nothing = "No parameters.") {
    forms += 1;
    this.#context = { root: schema, prefix: `form-${forms}`, count: 0, slots: new Map(), invalid: new Map(), changed: onChange };
    const { kind } = fieldKind(schema, schema, 0);
    this.#field = kind === "object" ? makeField(schema, this.#context, "", 0) : undefined;
    const isFree = this.#field === undefined && (schema.oneOf ?? schema.anyOf ?? schema.allOf) !== undefined;
    this.element.append(this.#field?.node ?? element("p", { class: "quiet" }, isFree ? "This schema has alternatives: edit the JSON." : nothing));
    this.value = defaultOf(schema, schema) ?? {};
  }

  get hasFields() {
    return this.#field !== undefined;
  }

  /** @returns {Json | undefined} */
  get value() {
    return this.#field ? this.#field.read() : this.#rest;
  }

  /** @param {Json | undefined} value */
  set value(value) {
    this.#rest = value;
    this.#context.invalid.clear();
    this.#field?.write(value);
  }

  /** The value of a form without fields. @type {Json | undefined} */
  #rest = {};

  /** What is wrong with the texts of fields that are edited as JSON. @returns {SchemaProblem[]} */
  get ownProblems() {
    return [...this.#context.invalid].map(([path, text]) => ({ path, text }));
  }

  /**
   * Shows each problem at its field, or at the nearest one around it.
   * @param {SchemaProblem[]} problems
   * @returns {SchemaProblem[]} those without a field
   */
  show(problems) {
    const { slots } = this.#context;
    for (const [path, { control, slot }] of slots) {
      if (!slot.isConnected && !this.element.contains(slot)) slots.delete(path);
      slot.textContent = "";
      control.removeAttribute("aria-invalid");
    }
    return problems.filter(({ path, text }) => {
      let at = path;
      while (at !== "" && !slots.has(at)) at = at.slice(0, at.lastIndexOf("/"));
      const found = slots.get(at);
      if (!found) return true;
      const name = at === path ? "" : `${path.slice(at.length + 1)} `;
      found.slot.textContent = [found.slot.textContent, name + text].filter(Boolean).join("; ");
      found.control.setAttribute("aria-invalid", "true");
      return false;
    });
  }

  /**
   * The control of a field, by its place.
   * @param {string} path
   */
  control(path) {
    return this.#context.slots.get(path)?.control;
  }

  /** Moves the focus to the first field, or the first with a problem. */
  focus() {
    const invalid = this.element.querySelector("[aria-invalid=true]");
    const first = invalid ?? this.element.querySelector("input, select, textarea, button");
    if (!(first instanceof HTMLElement)) return false;
    const inner = first.matches("fieldset, div") ? first.querySelector("input, select, textarea, button") : first;
    if (inner instanceof HTMLElement) inner.focus();
    return true;
  }
}
