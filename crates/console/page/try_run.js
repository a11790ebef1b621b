// One request in progress: its notifications, its questions, and its result.

import { button, element, setText } from "./dom.js";
import { duration, isolated } from "./format.js";
import { jsonView } from "./json_view.js";
import { McpError, asMap, asText, mcpRequest } from "./mcp_request.js";
import { questionControls, questionTitle } from "./question_form.js";
import { releaseMedia, resultView } from "./result_view.js";

/** @import { JsonMap, RpcMessage } from "./types.d.ts" */

/** The log lines of one request that are kept. */
const MAX_LOGS = 200;

/** How long a server that asks for a retry without a question is left alone, in milliseconds. */
const RETRY_DELAY = 1000;

/**
 * @typedef {{method: string, params: JsonMap, args?: string}} RunRequest
 * @typedef {{outcome: string, micros: number}} RunEnd
 */

export class TryRun {
  element = element("section", { class: "try-run", "aria-label": "Result" });
  /** Whether a request is running. */
  isRunning = false;
  #stop = new AbortController();
  #status = element("span", { class: "badge", role: "status", id: "try-status" });
  #time = element("span", { class: "quiet mono" });
  #progress = element("progress", { class: "try-progress", "aria-label": "Progress", hidden: true });
  #progressText = element("span", { class: "quiet" });
  #logs = element("div", { class: "try-logs mono", role: "log", "aria-label": "Log messages", tabindex: 0, hidden: true });
  #body = element("div", { class: "try-result", id: "try-result" });
  #openResource;
  #changed;

  /**
   * @param {(uri: string) => void} openResource
   * @param {() => void} changed is called when the request begins, asks or ends
   */
  constructor(openResource, changed) {
    this.#openResource = openResource;
    this.#changed = changed;
    this.element.hidden = true;
    this.element.append(element("div", { class: "try-head" }, this.#status, this.#time, this.#progress, this.#progressText), this.#logs, this.#body);
  }

  cancel() {
    this.#stop.abort();
  }

  /**
   * Makes a request, and shows what comes of it.
   * @param {RunRequest} request
   * @returns {Promise<RunEnd>}
   */
  async start(request) {
    this.cancel();
    const stop = new AbortController();
    this.#stop = stop;
    this.#begin();
    const started = performance.now();
    const { outcome, parts } = await this.#answer(request, stop.signal);
    const micros = (performance.now() - started) * 1000;
    // Another request has begun meanwhile, and the place is its own.
    if (this.#stop !== stop) return { outcome, micros };
    this.isRunning = false;
    this.#setStatus(outcome);
    setText(this.#time, duration(micros));
    this.#progress.hidden = true;
    setText(this.#progressText, "");
    this.#body.replaceChildren(...parts);
    this.#changed();
    return { outcome, micros };
  }

  #begin() {
    releaseMedia();
    this.isRunning = true;
    this.element.hidden = false;
    this.#setStatus("running");
    setText(this.#time, "");
    setText(this.#progressText, "");
    this.#progress.hidden = true;
    this.#progress.removeAttribute("value");
    this.#logs.replaceChildren();
    this.#logs.hidden = true;
    this.#body.replaceChildren();
    this.#changed();
  }

  /** @param {string} outcome */
  #setStatus(outcome) {
    const words = /** @type {Readonly<Record<string, string>>} */ ({ tool_error: "tool error", waiting: "the server asks" });
    this.#status.dataset.outcome = outcome;
    setText(this.#status, words[outcome] ?? outcome);
  }

  /**
   * @param {RunRequest} request
   * @param {AbortSignal} signal
   */
  async #answer(request, signal) {
    try {
      const result = await this.#rounds(request, signal);
      const view = resultView(result, this.#openResource);
      if (view.length === 0) view.push(element("p", { class: "quiet" }, "The result has no content."));
      const raw = element("details", { class: "raw-result" }, element("summary", {}, "JSON"), jsonView(result));
      return { outcome: result.isError === true ? "tool_error" : "ok", parts: [...view, raw] };
    } catch (error) {
      if (signal.aborted) return { outcome: "cancelled", parts: [element("p", { class: "quiet" }, "The request was cancelled.")] };
      return { outcome: "error", parts: errorView(error) };
    }
  }

  /**
   * Makes the request again with answers for as long as its result asks questions.
   * @param {RunRequest} request
   * @param {AbortSignal} signal
   */
  async #rounds({ method, params, args }, signal) {
    /** @type {JsonMap} */
    let more = {};
    for (;;) {
      const options = { signal, args, onMessage: (/** @type {RpcMessage} */ message) => this.#take(message) };
      const result = await mcpRequest(method, { ...params, ...more }, options);
      if (result.resultType !== "input_required") return result;
      const requests = Object.entries(asMap(result.inputRequests));
      const inputResponses = requests.length > 0 ? await this.#ask(requests.map(([key, each]) => [key, asMap(each)]), signal) : {};
      if (requests.length === 0) await delay(RETRY_DELAY, signal);
      more = { inputResponses, ...(result.requestState === undefined ? {} : { requestState: result.requestState }) };
    }
  }

  /**
   * Shows the questions of a round, and waits until each is answered.
   * @param {Array<[string, JsonMap]>} requests
   * @param {AbortSignal} signal
   * @returns {Promise<JsonMap>}
   */
  #ask(requests, signal) {
    this.#setStatus("waiting");
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      /** @type {Array<[string, JsonMap]>} */
      const answers = [];
      const cards = requests.map(([key, request]) => {
        const [method, params] = [asText(request.method), asMap(request.params)];
        const card = element("article", { class: "question-card", "aria-label": questionTitle(method, params) });
        const controls = questionControls(method, params, (response, text) => {
          answers.push([key, response]);
          card.replaceChildren(element("p", { class: "quiet" }, `${questionTitle(method, params)}: ${text}`));
          if (answers.length < requests.length) return;
          this.#setStatus("running");
          resolve(Object.fromEntries(answers));
        });
        card.append(element("h3", {}, questionTitle(method, params)), controls);
        return card;
      });
      this.#body.replaceChildren(...cards);
      const first = this.#body.querySelector("input, select, textarea, a, button");
      if (first instanceof HTMLElement) first.focus();
      this.#changed();
    });
  }

  /** @param {RpcMessage} message */
  #take(message) {
    const params = asMap(message.params);
    if (message.method === "notifications/progress") return this.#takeProgress(params);
    if (message.method !== "notifications/message") return;
    const data = typeof params.data === "string" ? params.data : JSON.stringify(params.data ?? null);
    this.#logs.hidden = false;
    this.#logs.append(element("p", { "data-level": asText(params.level) },
      element("bdi", { class: "quiet" }, `${asText(params.level)}${params.logger ? ` ${asText(params.logger)}` : ""}`), "  ", element("bdi", {}, data.slice(0, 4000))));
    while (this.#logs.childElementCount > MAX_LOGS) this.#logs.firstElementChild?.remove();
    this.#logs.scrollTop = this.#logs.scrollHeight;
  }

  /** @param {JsonMap} params */
  #takeProgress(params) {
    const { progress, total } = params;
    this.#progress.hidden = false;
    if (typeof progress === "number" && typeof total === "number" && total > 0) {
      this.#progress.max = total;
      this.#progress.value = Math.min(progress, total);
    }
    const figures = typeof total === "number" ? `${progress} of ${total}` : `${progress ?? ""}`;
    setText(this.#progressText, [figures, isolated(asText(params.message).slice(0, 500))].filter(Boolean).join("  "));
  }
}

/** @param {unknown} error */
function errorView(error) {
  const text = error instanceof Error ? error.message : String(error);
  if (!(error instanceof McpError)) return [element("p", { class: "error-text" }, text)];
  /** @type {HTMLElement[]} */
  const parts = [element("p", { class: "error-text" }, text, element("span", { class: "quiet" }, `  code ${error.code}`))];
  if (error.data !== undefined) parts.push(jsonView(error.data));
  return parts;
}

/**
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 */
function delay(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}

/**
 * The button that cancels a request.
 * @param {TryRun} run
 */
export function cancelButton(run) {
  return button("Cancel", "Cancel the request (Esc)", () => run.cancel(), { id: "try-cancel" });
}
