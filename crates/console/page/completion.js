// Suggestions of a server for the arguments of its prompts and templates, offered by the browser at the field.

import { element } from "./dom.js";
import { asList, asMap, mcpRequest } from "./mcp_request.js";

/** @import { JsonMap } from "./types.d.ts" */

/** How long typing rests before suggestions are read, in milliseconds. */
const REST = 200;

/** The suggestions that are offered, and the characters of one. */
const MAX_VALUES = 100;
const MAX_CHARACTERS = 1000;

/** Grows with every field, so that ids are unique in the page. */
let lists = 0;

/**
 * Offers suggestions at a field. A server without completion offers none.
 * @param {HTMLElement | undefined} field
 * @param {string} name of the argument
 * @param {JsonMap} reference what the argument is of
 * @param {() => JsonMap} others the values of the other arguments
 */
export function attachCompletion(field, name, reference, others) {
  if (!(field instanceof HTMLInputElement)) return;
  lists += 1;
  const options = element("datalist", { id: `suggestions-${lists}` });
  field.setAttribute("list", options.id);
  field.after(options);
  let timer = 0;
  let stop = new AbortController();
  const read = async () => {
    stop.abort();
    stop = new AbortController();
    const params = { ref: reference, argument: { name, value: field.value }, context: { arguments: others() } };
    try {
      const { completion } = await mcpRequest("completion/complete", params, { signal: stop.signal });
      const values = asList(asMap(completion).values).filter((value) => typeof value === "string");
      options.replaceChildren(...values.slice(0, MAX_VALUES).map((value) => element("option", { value: value.slice(0, MAX_CHARACTERS) })));
    } catch {
      // Suggestions are a help, and the field works without them.
    }
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void read(), REST);
  };
  field.addEventListener("input", later);
  field.addEventListener("focus", () => {
    if (options.childElementCount === 0) later();
  });
}
