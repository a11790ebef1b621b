// What can be tried: the tools, prompts and resources of all servers, as this page's own client sees them.

import { McpError, asText, mcpList } from "./mcp_request.js";

/** @import { JsonMap, TryItem } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

/** @typedef {"tools" | "prompts" | "resources"} TryKind */

/** The lists of each kind. @type {Record<TryKind, Array<{method: string, member: string, kind: TryItem["kind"]}>>} */
const LISTS = {
  tools: [{ method: "tools/list", member: "tools", kind: "tool" }],
  prompts: [{ method: "prompts/list", member: "prompts", kind: "prompt" }],
  resources: [
    { method: "resources/list", member: "resources", kind: "resource" },
    { method: "resources/templates/list", member: "resourceTemplates", kind: "template" },
  ],
};

/** The code of a method that no server behind the hub has. */
const METHOD_NOT_FOUND = -32601;

export class TryCatalog {
  /** @type {Record<TryKind, TryItem[]>} */
  items = { tools: [], prompts: [], resources: [] };
  /** Why a list could not be read. @type {Record<TryKind, string>} */
  problems = { tools: "", prompts: "", resources: "" };
  /** The kinds that were read. @type {Set<TryKind>} */
  loaded = new Set();
  /** Grows with every list that was read. */
  version = 0;
  #store;

  /** @param {Store} store */
  constructor(store) {
    this.#store = store;
  }

  /** @param {TryKind} kind */
  async load(kind) {
    try {
      const parts = [];
      for (const list of LISTS[kind]) parts.push(...await this.#read(list));
      this.items[kind] = parts.sort((a, b) => a.server.localeCompare(b.server) || a.title.localeCompare(b.title));
      this.problems[kind] = "";
    } catch (error) {
      this.problems[kind] = error instanceof Error ? error.message : String(error);
    }
    this.loaded.add(kind);
    this.version += 1;
  }

  /**
   * @param {TryKind} kind
   * @param {string} id
   */
  find(kind, id) {
    return this.items[kind].find((item) => item.id === id);
  }

  /** @param {{method: string, member: string, kind: TryItem["kind"]}} list */
  async #read({ method, member, kind }) {
    try {
      return (await mcpList(method, member)).map((raw) => this.#item(kind, raw));
    } catch (error) {
      if (error instanceof McpError && error.code === METHOD_NOT_FOUND) return [];
      throw error;
    }
  }

  /**
   * @param {TryItem["kind"]} kind
   * @param {JsonMap} raw
   * @returns {TryItem}
   */
  #item(kind, raw) {
    const name = asText(raw.name);
    const id = kind === "resource" ? asText(raw.uri) : kind === "template" ? asText(raw.uriTemplate) : name;
    return { kind, id, title: name || id, description: asText(raw.description) || asText(raw.title), server: this.#serverOf(name), raw };
  }

  /**
   * The server of an item, where the hub put its name before the item's.
   * @param {string} name
   */
  #serverOf(name) {
    const found = [...this.#store.servers.keys()]
      .filter((server) => name.startsWith(server) && /^[^a-zA-Z0-9]/.test(name.slice(server.length)));
    return found.sort((a, b) => b.length - a.length)[0] ?? "";
  }
}

/**
 * The kind of list that an item is in.
 * @param {TryItem} item
 * @returns {TryKind}
 */
export function kindOf(item) {
  if (item.kind === "tool") return "tools";
  return item.kind === "prompt" ? "prompts" : "resources";
}
