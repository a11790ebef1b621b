// The result of a call, for people: texts, tables, pictures, sound, links, and the JSON itself.
//
// Pictures and sound come from a server. They are decoded from its bytes under a type that this page chooses from a list, as
// an image or a sound and never as a document, so that nothing in them runs, loads or styles anything.

import { button, element } from "./dom.js";
import { size } from "./format.js";
import { jsonView } from "./json_view.js";
import { asList, asMap, asText } from "./mcp_request.js";
import { download } from "./record.js";

/** @import { Json, JsonMap } from "./types.d.ts" */

/** The types of pictures and sound that are shown. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);
const SOUNDS = new Set(["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/webm", "audio/mp4", "audio/flac", "audio/aac"]);

/** The characters of a text, the rows and the columns of a table that are shown at first. */
const FIRST_CHARACTERS = 20_000;
const FIRST_ROWS = 100;
const MAX_COLUMNS = 30;

/** The content blocks that are shown. */
const MAX_BLOCKS = 200;

/** Addresses of what is shown, which are released when the next result is. @type {string[]} */
let urls = [];

/** Releases the pictures and sounds of an earlier result. */
export function releaseMedia() {
  for (const url of urls) URL.revokeObjectURL(url);
  urls = [];
}

/**
 * Draws the result of a tool, a prompt or a resource.
 * @param {JsonMap} result
 * @param {(uri: string) => void} openResource
 * @returns {HTMLElement[]}
 */
export function resultView(result, openResource) {
  const parts = [
    ...asList(result.content).slice(0, MAX_BLOCKS).map((block) => contentView(asMap(block), openResource)),
    ...asList(result.contents).slice(0, MAX_BLOCKS).map((block) => resourceView(asMap(block))),
    ...asList(result.messages).slice(0, MAX_BLOCKS).map((message) => messageView(asMap(message), openResource)),
  ];
  if (result.structuredContent !== undefined) parts.unshift(...structuredView(result.structuredContent));
  const skipped = [result.content, result.contents, result.messages].map((list) => Math.max(0, asList(list).length - MAX_BLOCKS))
    .reduce((sum, more) => sum + more, 0);
  if (skipped > 0) parts.push(element("p", { class: "quiet" }, `${skipped} more blocks are in the JSON below`));
  return parts;
}

/**
 * A message of a prompt, or of a conversation for a model.
 * @param {JsonMap} message
 * @param {(uri: string) => void} openResource
 */
export function messageView(message, openResource) {
  const blocks = Array.isArray(message.content) ? message.content : [message.content ?? null];
  return element("div", { class: "prompt-message" }, element("span", { class: "chip" }, asText(message.role)),
    ...blocks.slice(0, MAX_BLOCKS).map((block) => contentView(asMap(block), openResource)));
}

/**
 * @param {JsonMap} block
 * @param {(uri: string) => void} openResource
 * @returns {HTMLElement}
 */
function contentView(block, openResource) {
  switch (block.type) {
    case "text": return textView(asText(block.text));
    case "image": case "audio": return mediaView(asText(block.data), asText(block.mimeType), "");
    case "resource": return resourceView(asMap(block.resource));
    case "resource_link": return linkView(block, openResource);
    default: return jsonView(block);
  }
}

/** @param {string} text */
function textView(text) {
  const shown = element("pre", { class: "text-block", tabindex: 0, role: "region", "aria-label": "Text" }, text.slice(0, FIRST_CHARACTERS));
  if (text.length <= FIRST_CHARACTERS) return shown;
  const more = button(`Show all ${text.length.toLocaleString("en")} characters`, "Show the whole text", () => {
    shown.textContent = text;
    more.remove();
  }, { class: "more" });
  return element("div", {}, shown, more);
}

/** @param {JsonMap} resource */
function resourceView(resource) {
  const uri = asText(resource.uri);
  const mime = asText(resource.mimeType);
  const head = element("p", { class: "resource-head" }, element("code", {}, uri), mime ? element("span", { class: "chip" }, mime) : undefined);
  const content = typeof resource.text === "string" ? textView(resource.text) : mediaView(asText(resource.blob), mime, uri);
  return element("div", { class: "resource" }, head, content);
}

/**
 * @param {JsonMap} link
 * @param {(uri: string) => void} openResource
 */
function linkView(link, openResource) {
  const uri = asText(link.uri);
  return element("div", { class: "resource" },
    element("p", { class: "resource-head" },
      button(asText(link.title) || asText(link.name) || uri, "Open this resource", () => openResource(uri), { class: "link" }),
      element("code", { class: "quiet" }, uri), link.mimeType ? element("span", { class: "chip" }, asText(link.mimeType)) : undefined),
    link.description ? element("p", { class: "quiet" }, asText(link.description)) : undefined);
}

/**
 * @param {string} data base64
 * @param {string} given the type that the server states
 * @param {string} uri
 */
function mediaView(data, given, uri) {
  const type = given.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const bytes = decoded(data);
  if (!bytes) return element("p", { class: "error-text" }, `The ${type || "content"} is not base64.`);
  const about = `${given || "no type"}, ${size(bytes.length)}`;
  const name = uri.slice(uri.lastIndexOf("/") + 1).replaceAll(/[^\w.-]/g, "_").slice(-80) || "content";
  const save = button("Save", "Save these bytes as a file", () => download(name, [bytes]));
  const isPicture = PICTURES.has(type);
  if (!isPicture && !SOUNDS.has(type)) return element("p", { class: "media-about" }, `${about} `, save);
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  urls.push(url);
  const shown = isPicture ? element("img", { class: "picture" }) : element("audio", { class: "sound" });
  const failed = element("span", { class: "error-text", hidden: true }, "This browser cannot show it. ");
  shown.addEventListener("error", () => {
    failed.hidden = false;
    shown.hidden = true;
  });
  if (shown instanceof HTMLImageElement) shown.alt = "The picture of the result";
  else shown.controls = true;
  shown.src = url;
  return element("figure", { class: "media" }, shown, element("figcaption", { class: "media-about" }, failed, `${about} `, save));
}

/** @param {string} data */
function decoded(data) {
  try {
    return Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/**
 * Structured content: tables of what is a list of objects, and values beside them.
 * @param {Json} value
 * @returns {HTMLElement[]}
 */
function structuredView(value) {
  if (isTable(value)) return [tableView(value)];
  const parts = Object.entries(asMap(value)).flatMap(([name, member]) =>
    (isTable(member) ? [element("h3", { class: "table-name" }, name), tableView(member)] : []));
  return parts.length > 0 ? parts : [jsonView(value)];
}

/**
 * @param {Json | undefined} value
 * @returns {value is JsonMap[]}
 */
function isTable(value) {
  return Array.isArray(value) && value.length > 0 &&
    value.every((row) => typeof row === "object" && row !== null && !Array.isArray(row));
}

/** @param {JsonMap[]} rows */
function tableView(rows) {
  const columns = [...new Set(rows.slice(0, 1000).flatMap((row) => Object.keys(row)))];
  const shown = columns.slice(0, MAX_COLUMNS);
  const drawRow = (/** @type {JsonMap} */ row) => element("tr", {}, ...shown.map((name) => {
    const cell = Object.hasOwn(row, name) ? row[name] : undefined;
    return element("td", { class: typeof cell === "number" ? "number" : undefined }, cellText(cell));
  }));
  const body = element("tbody", {}, ...rows.slice(0, FIRST_ROWS).map(drawRow));
  const table = element("table", { class: "data-table" },
    element("thead", {}, element("tr", {}, ...shown.map((name) => element("th", { scope: "col", class: typeof rows[0]?.[name] === "number" ? "number" : undefined }, name)))), body);
  const scroller = element("div", { class: "table-scroller", tabindex: 0, role: "region", "aria-label": "Table" }, table);
  const notes = element("p", { class: "quiet" }, [
    `${rows.length.toLocaleString("en")} rows`, columns.length > MAX_COLUMNS ? `${columns.length - MAX_COLUMNS} more columns` : "",
  ].filter(Boolean).join(", "));
  if (rows.length > FIRST_ROWS) {
    const more = button(" Show all", "Show every row", () => {
      body.append(...rows.slice(FIRST_ROWS, 20_000).map(drawRow));
      more.remove();
    });
    notes.append(" ", more);
  }
  return element("div", {}, scroller, notes);
}

/** @param {Json | undefined} value */
function cellText(value) {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}
