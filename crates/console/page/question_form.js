// A question of a server with the controls that answer it: a form, a page to open, a text in place of a model's, folders.

import { announce, button, element } from "./dom.js";
import { asList, asMap, asText } from "./mcp_request.js";
import { messageView } from "./result_view.js";
import { checkValue } from "./schema_check.js";
import { SchemaForm } from "./schema_form.js";

/** @import { Json, JsonMap } from "./types.d.ts" */

/** The messages of a conversation that are shown. */
const MAX_MESSAGES = 50;

/**
 * A card with a question. It is answered once: then its controls are gone.
 * @param {string} method
 * @param {JsonMap} params
 * @param {(response: JsonMap, text: string) => void} answer
 * @returns {HTMLElement}
 */
export function questionControls(method, params, answer) {
  switch (method) {
    case "elicitation/create": return params.mode === "url" ? urlQuestion(params, answer) : formQuestion(params, answer);
    case "sampling/createMessage": return samplingQuestion(params, answer);
    case "roots/list": return rootsQuestion(answer);
    default: return element("p", { class: "error-text" }, `This page cannot answer ${method}.`);
  }
}

/** @param {string} method @param {JsonMap} params */
export function questionTitle(method, params) {
  if (method === "elicitation/create") return params.mode === "url" ? "A page to open" : "A form";
  if (method === "sampling/createMessage") return "A text in place of a model's";
  return method === "roots/list" ? "Folders" : method;
}

/**
 * @param {JsonMap} params
 * @param {(response: JsonMap, text: string) => void} answer
 */
function formQuestion(params, answer) {
  const schema = asMap(params.requestedSchema);
  const form = new SchemaForm(schema, () => undefined, "Nothing to fill in.");
  const problem = element("p", { class: "field-problem", role: "alert" });
  const submit = () => {
    const content = form.value ?? {};
    const problems = [...form.ownProblems, ...checkValue(content, schema)];
    problem.textContent = form.show(problems).map(({ path, text }) => `${path} ${text}`).join("; ");
    if (problems.length > 0) return void form.focus();
    answer({ action: "accept", content }, "accepted");
  };
  const made = element("form", { class: "question-form" }, message(params.message), form.element, problem,
    element("div", { class: "question-actions" }, element("button", { type: "submit", class: "primary" }, "Submit"), ...refusals(answer)));
  made.noValidate = true;
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return made;
}

/** @param {(response: JsonMap, text: string) => void} answer */
function refusals(answer) {
  return [
    button("Decline", "Answer that you will not", () => answer({ action: "decline" }, "declined")),
    button("Dismiss", "Answer neither yes nor no", () => answer({ action: "cancel" }, "dismissed"), { class: "ghost" }),
  ];
}

/** @param {Json | undefined} text */
function message(text) {
  return element("p", { class: "question-message" }, asText(text) || "(no message)");
}

/**
 * The link is opened by the user, who sees its host first; nothing of it is loaded before.
 * @param {JsonMap} params
 * @param {(response: JsonMap, text: string) => void} answer
 */
function urlQuestion(params, answer) {
  const text = asText(params.url);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    return element("div", { class: "question-form" }, message(params.message),
      element("p", { class: "error-text" }, "The address is neither http nor https, and is not opened:"),
      element("code", { class: "address" }, text), element("div", { class: "question-actions" }, ...refusals(answer)));
  }
  const link = element("a", { class: "button primary" }, `Open ${url.host}`);
  link.href = url.href;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  link.addEventListener("click", () => answer({ action: "accept" }, `opened ${url.host}`));
  return element("div", { class: "question-form" }, message(params.message),
    element("p", {}, "The server wants you to open a page of ", element("strong", { class: "host" }, url.host),
      url.protocol.slice(0, -1) === "http" ? ", without encryption" : "", ":"),
    element("code", { class: "address" }, url.href),
    element("div", { class: "question-actions" }, link, ...refusals(answer)));
}

/**
 * @param {JsonMap} params
 * @param {(response: JsonMap, text: string) => void} answer
 */
function samplingQuestion(params, answer) {
  const text = element("textarea", { class: "answer-text", "aria-label": "The answer", placeholder: "Your answer, in place of a model's" });
  const settings = ["maxTokens", "temperature", "stopSequences", "modelPreferences"].flatMap((name) =>
    (params[name] === undefined ? [] : [`${name} ${JSON.stringify(params[name])}`]));
  const openNothing = () => announce("Resources are opened on the page Try");
  const made = element("form", { class: "question-form" },
    params.systemPrompt ? element("div", { class: "prompt-message" }, element("span", { class: "chip" }, "system"), element("pre", { class: "text-block" }, asText(params.systemPrompt))) : undefined,
    ...asList(params.messages).slice(-MAX_MESSAGES).map((each) => messageView(asMap(each), openNothing)),
    settings.length > 0 ? element("p", { class: "help" }, settings.join("  ·  ")) : undefined,
    text, element("div", { class: "question-actions" }, element("button", { type: "submit", class: "primary" }, "Send the answer")));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    answer({ role: "assistant", content: { type: "text", text: text.value }, model: "a person at the trunkline console", stopReason: "endTurn" }, "answered");
  });
  return made;
}

/** @param {(response: JsonMap, text: string) => void} answer */
function rootsQuestion(answer) {
  const text = element("textarea", { class: "mono", "aria-label": "Folders, one URI a line", placeholder: "file:///home/ann/project" });
  const problem = element("p", { class: "field-problem", role: "alert" });
  const made = element("form", { class: "question-form" },
    element("p", { class: "question-message" }, "The server wants to know the folders that it may work in: a file:// URI on each line, or none."),
    text, problem, element("div", { class: "question-actions" }, element("button", { type: "submit", class: "primary" }, "Send")));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const uris = text.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const wrong = uris.find((uri) => !uri.startsWith("file://"));
    problem.textContent = wrong ? `${wrong} does not begin with file://` : "";
    if (!wrong) answer({ roots: uris.map((uri) => ({ uri })) }, `sent ${uris.length} folders`);
  });
  return made;
}
