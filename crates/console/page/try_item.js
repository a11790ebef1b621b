// The pane of one tool or prompt: what it is, its arguments, and the button that calls it.

import { ArgumentsEditor } from "./arguments_editor.js";
import { attachCompletion } from "./completion.js";
import { button, element } from "./dom.js";
import { jsonView } from "./json_view.js";
import { asList, asMap, asText } from "./mcp_request.js";
import { fromEntries, pointer } from "./schema.js";

/** @import { Json, JsonMap, TryItem } from "./types.d.ts" */
/** @import { RunRequest } from "./try_run.js" */

/**
 * What a pane needs of the page.
 * @typedef {object} TryHost
 * @property {(request: RunRequest, label: string) => void} run
 * @property {() => HTMLElement} cancelButton
 */

/**
 * The head of a pane: names and descriptions, as texts.
 * @param {TryItem} item
 */
export function itemHead(item) {
  const title = asText(item.raw.title) || asText(asMap(item.raw.annotations).title);
  const hints = Object.entries(asMap(item.raw.annotations)).filter(([name, value]) => name.endsWith("Hint") && value === true)
    .map(([name]) => element("span", { class: "chip" }, name.replace(/Hint$/, "")));
  return element("div", { class: "try-title" },
    element("h2", {}, element("bdi", {}, item.title), title && title !== item.title ? element("bdi", { class: "quiet" }, `  ${title}`) : undefined, ...hints),
    item.description ? element("p", { class: "try-description" }, item.description) : undefined,
    element("details", { class: "raw-result" }, element("summary", {}, "Definition"), jsonView(item.raw)));
}

/** The pane of a tool or prompt. */
export class ArgumentsPane {
  element;
  #item;
  #host;
  #editor;
  #anyway;

  /**
   * @param {TryItem} item
   * @param {TryHost} host
   * @param {string} [args] the arguments to begin with, as JSON
   */
  constructor(item, host, args) {
    this.#item = item;
    this.#host = host;
    const isTool = item.kind === "tool";
    this.#editor = new ArgumentsEditor(isTool ? asMap(item.raw.inputSchema) : promptSchema(item.raw), args);
    this.#anyway = button("Send anyway", "Send arguments that do not fit the schema", () => this.#send(), { hidden: true });
    const form = element("form", { class: "try-form" }, this.#editor.element, element("div", { class: "try-actions" },
      element("button", { type: "submit", class: "primary", id: "try-send" }, isTool ? "Call" : "Get"), host.cancelButton(), this.#anyway,
      element("span", { class: "quiet try-hint" }, "Ctrl Enter")));
    form.noValidate = true;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.submit();
    });
    this.element = element("div", { class: "try-pane" }, itemHead(item), form);
    if (!isTool) this.#completePrompt();
  }

  focus() {
    return this.#editor.form.focus();
  }

  close() {}

  submit() {
    const { canSend, isValid } = this.#editor.check();
    this.#anyway.hidden = isValid || !canSend;
    if (isValid) this.#send();
    else this.#editor.form.focus();
  }

  #send() {
    this.#anyway.hidden = true;
    const method = this.#item.kind === "tool" ? "tools/call" : "prompts/get";
    this.#host.run({ method, params: { name: this.#item.id }, args: this.#editor.text }, this.#item.title);
  }

  #completePrompt() {
    for (const argument of asList(this.#item.raw.arguments).map(asMap)) {
      const name = asText(argument.name);
      const others = () => asMap(this.#editor.form.value);
      attachCompletion(this.#editor.form.control(pointer("", name)), name, { type: "ref/prompt", name: this.#item.id }, others);
    }
  }
}

/**
 * The arguments of a prompt, which are texts, as a schema.
 * @param {JsonMap} prompt
 * @returns {JsonMap}
 */
function promptSchema(prompt) {
  const given = asList(prompt.arguments).map(asMap);
  const properties = fromEntries(given.map((argument) => {
    /** @type {JsonMap} */
    const schema = { type: "string" };
    for (const name of ["title", "description"]) if (typeof argument[name] === "string") schema[name] = /** @type {Json} */ (argument[name]);
    return [asText(argument.name), schema];
  }));
  return { type: "object", properties, required: given.filter(({ required }) => required === true).map(({ name }) => name ?? "") };
}
