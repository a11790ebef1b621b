// The pane of a resource or a template of resources: read it, and be shown when it changes.

import { attachCompletion } from "./completion.js";
import { button, element, setText } from "./dom.js";
import { clock } from "./format.js";
import { asList, asMap, mcpRequest } from "./mcp_request.js";
import { pointer } from "./schema.js";
import { SchemaForm } from "./schema_form.js";
import { itemHead } from "./try_item.js";
import { expandTemplate, templateVariables } from "./uri_template.js";

/** @import { Json, RpcMessage, TryItem } from "./types.d.ts" */
/** @import { TryHost } from "./try_item.js" */

export class ResourcePane {
  element;
  #host;
  #item;
  #uri = element("input", { type: "text", id: "try-uri", class: "mono", spellcheck: "false", autocomplete: "off" });
  #subscribe = button("Subscribe", "Read the resource again whenever it changes", () => this.#toggle(), { id: "try-subscribe", "aria-pressed": "false" });
  #updates = element("p", { class: "quiet", role: "status", id: "try-updates" });
  #count = 0;
  /** @type {AbortController | undefined} */
  #listening;

  /**
   * @param {TryItem} item
   * @param {TryHost} host
   * @param {string} [args] the URI to begin with, as JSON
   */
  constructor(item, host, args) {
    this.#item = item;
    this.#host = host;
    const isTemplate = item.kind === "template";
    this.#uri.value = startUri(item, args);
    const form = element("form", { class: "try-form" }, isTemplate ? this.#variables() : undefined,
      element("div", { class: "field" }, element("label", { for: "try-uri" }, "URI"), this.#uri),
      element("div", { class: "try-actions" }, element("button", { type: "submit", class: "primary", id: "try-send" }, "Read"),
        host.cancelButton(), this.#subscribe, this.#updates));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.#uri.addEventListener("input", () => this.close());
    this.element = element("div", { class: "try-pane" }, itemHead(item), form);
  }

  focus() {
    const first = this.element.querySelector("form input, form textarea");
    if (first instanceof HTMLElement) first.focus();
    return first !== null;
  }

  /** Ends the subscription. */
  close() {
    this.#listening?.abort();
    this.#listening = undefined;
    this.#subscribe.setAttribute("aria-pressed", "false");
    setText(this.#subscribe, "Subscribe");
  }

  submit() {
    const uri = this.#uri.value.trim();
    if (uri) this.#host.run({ method: "resources/read", params: { uri } }, uri);
    else this.#uri.focus();
  }

  /** A field for each variable of the template. */
  #variables() {
    const template = this.#item.id;
    const names = templateVariables(template);
    const properties = Object.fromEntries(names.map((name) => [name, /** @type {Json} */ ({ type: "string" })]));
    const form = new SchemaForm({ type: "object", properties }, () => {
      this.close();
      this.#uri.value = expandTemplate(template, valuesOf(form.value));
    }, "This template has no variables.");
    for (const name of names) {
      const others = () => asMap(form.value);
      attachCompletion(form.control(pointer("", name)), name, { type: "ref/resource", uri: template }, others);
    }
    return form.element;
  }

  #toggle() {
    if (this.#listening) return this.close();
    const uri = this.#uri.value.trim();
    if (!uri) return this.#uri.focus();
    const stop = new AbortController();
    this.#listening = stop;
    this.#count = 0;
    this.#subscribe.setAttribute("aria-pressed", "true");
    setText(this.#subscribe, "Unsubscribe");
    setText(this.#updates, "subscribing…");
    void this.#listen(uri, stop);
  }

  /**
   * @param {string} uri
   * @param {AbortController} stop
   */
  async #listen(uri, stop) {
    const onMessage = (/** @type {RpcMessage} */ message) => this.#take(message, uri);
    try {
      await mcpRequest("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } }, { signal: stop.signal, onMessage });
      setText(this.#updates, "The hub ended the subscription.");
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      setText(this.#updates, stop.signal.aborted ? "" : why);
    }
    if (this.#listening === stop) this.close();
  }

  /**
   * @param {RpcMessage} message
   * @param {string} uri
   */
  #take(message, uri) {
    if (message.method === "notifications/subscriptions/acknowledged") {
      const accepted = asList(asMap(asMap(message.params).notifications).resourceSubscriptions);
      if (accepted.includes(uri)) return setText(this.#updates, "subscribed, no update yet");
      this.close();
      return setText(this.#updates, "This resource cannot be subscribed to.");
    }
    if (message.method !== "notifications/resources/updated") return;
    this.#count += 1;
    setText(this.#updates, `updated ${this.#count} × , last at ${clock(Date.now())}`);
    this.#host.run({ method: "resources/read", params: { uri } }, uri);
  }
}

/**
 * @param {TryItem} item
 * @param {string | undefined} args
 */
function startUri(item, args) {
  if (args !== undefined) return args;
  return item.kind === "template" ? expandTemplate(item.id, new Map()) : item.id;
}

/**
 * @param {Json | undefined} value
 * @returns {Map<string, string>}
 */
function valuesOf(value) {
  return new Map(Object.entries(asMap(value)).map(([name, each]) => [name, String(each)]));
}
