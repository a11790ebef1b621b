// Arguments as a form and as JSON beside it. Each follows the other; what is sent is the JSON as it is written.

import { element } from "./dom.js";
import { checkValue } from "./schema_check.js";
import { SchemaForm } from "./schema_form.js";

/** @import { Json, JsonMap } from "./types.d.ts" */
/** @import { SchemaProblem } from "./schema.js" */

/** Grows with every editor, so that ids are unique in the page. */
let editors = 0;

export class ArgumentsEditor {
  element;
  form;
  #schema;
  #text = element("textarea", { class: "mono raw-text", spellcheck: "false" });
  #problem = element("p", { class: "field-problem", role: "alert" });
  /** What is wrong with the JSON as such. */
  #jsonProblem = "";
  /** Whether problems are shown as they come, which begins with the first attempt to send. */
  #shows = false;

  /**
   * @param {JsonMap} schema
   * @param {string} [text] the JSON to begin with, instead of the defaults
   */
  constructor(schema, text) {
    editors += 1;
    this.#schema = schema;
    this.form = new SchemaForm(schema, () => this.#formChanged());
    const id = `raw-${editors}`;
    this.#text.id = id;
    this.#problem.id = `${id}-problem`;
    this.#text.setAttribute("aria-describedby", this.#problem.id);
    this.#text.addEventListener("input", () => this.#textChanged());
    this.element = element("div", { class: this.form.hasFields ? "arguments" : "arguments no-fields" },
      element("div", { class: "arguments-form" }, this.form.element),
      element("div", { class: "arguments-json" }, element("label", { for: id }, "JSON"), this.#text, this.#problem));
    this.#text.value = text ?? JSON.stringify(this.form.value ?? {}, null, 2);
    if (text !== undefined) this.#textChanged();
  }

  /** The arguments as they are written. */
  get text() {
    return this.#text.value.trim() === "" ? "{}" : this.#text.value;
  }

  /**
   * Shows what is wrong with the arguments.
   * @returns {{canSend: boolean, isValid: boolean}} whether they are JSON of an object at all, and whether they fit the schema
   */
  check() {
    this.#shows = true;
    const problems = this.#showProblems();
    return { canSend: this.#jsonProblem === "" && this.form.ownProblems.length === 0, isValid: problems === 0 };
  }

  #formChanged() {
    const value = this.form.value;
    this.#jsonProblem = "";
    this.#text.value = JSON.stringify(value ?? {}, null, 2);
    if (this.#shows) this.#showProblems();
  }

  #textChanged() {
    this.#jsonProblem = "";
    try {
      const value = /** @type {Json} */ (JSON.parse(this.text));
      if (typeof value !== "object" || value === null || Array.isArray(value)) this.#jsonProblem = "The arguments must be an object.";
      else this.form.value = value;
    } catch (error) {
      this.#jsonProblem = error instanceof Error ? error.message : String(error);
    }
    this.#showProblems();
  }

  /** @returns {number} how many there are */
  #showProblems() {
    /** @type {SchemaProblem[]} */
    let problems = [];
    if (this.#jsonProblem === "") problems = [...this.form.ownProblems, ...checkValue(this.form.value, this.#schema)];
    const rest = this.form.show(this.#shows ? problems : []);
    const texts = rest.map(({ path, text }) => `${path.replace(/^\//, "") || "The arguments"} ${text}`);
    this.#problem.textContent = this.#jsonProblem || texts.join("; ");
    if (this.#problem.textContent) this.#text.setAttribute("aria-invalid", "true");
    else this.#text.removeAttribute("aria-invalid");
    return problems.length + (this.#jsonProblem ? 1 : 0);
  }
}
