// Record files: what the page saves, and what it reads for a view.

import { byId } from "./dom.js";
import { parseEvent } from "./stream.js";

/** @import { HubEvent } from "./types.d.ts" */

/** The version of the format. */
const VERSION = 1;

/** The longest file that is read, and the characters of a recording in this page. */
export const MAX_FILE_BYTES = 256 << 20;

/** Lines that are gathered before the browser, which can keep them on disk, takes them. */
const CHUNK = 500;

let hubVersion = "";

/** @param {string} version */
export function setHubVersion(version) {
  hubVersion = version;
}

/** The first line of a file. */
export function recordHead() {
  return JSON.stringify({ trunkline_record: VERSION, started: new Date().toISOString(), version: hubVersion });
}

/**
 * Saves a file through the browser.
 * @param {string} name
 * @param {BlobPart[]} parts
 */
export function download(name, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type: "application/jsonl" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A recording in this page: the lines of the stream from its start on. */
export class PageRecorder {
  events = 0;
  #size = 0;
  /** @type {Blob[]} */
  #blobs = [];
  /** @type {string[]} */
  #lines = [recordHead()];

  /**
   * @param {string} line
   * @returns {boolean} whether there is room for more
   */
  push(line) {
    this.events += 1;
    this.#size += line.length;
    this.#lines.push(line);
    if (this.#lines.length >= CHUNK) this.#flush();
    return this.#size < MAX_FILE_BYTES;
  }

  save() {
    this.#flush();
    const time = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
    download(`trunkline-${time}.jsonl`, this.#blobs);
  }

  #flush() {
    this.#blobs.push(new Blob(this.#lines.map((line) => `${line}\n`)));
    this.#lines = [];
  }
}

/**
 * Reads a record file.
 * @param {string} text
 * @returns {Array<{event: HubEvent, line: string}>}
 * @throws {Error} with a sentence for the user
 */
export function readRecord(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  /** @type {{trunkline_record?: unknown}} */
  let head = {};
  try {
    head = JSON.parse(lines[0] ?? "") ?? {};
  } catch {
    // It is no record file, as below.
  }
  if (typeof head.trunkline_record !== "number") throw new Error("This is not a record file of trunkline.");
  if (head.trunkline_record > VERSION) throw new Error("This record file is of a newer version of trunkline.");
  return lines.slice(1).flatMap((line) => {
    const event = parseEvent(line);
    return event ? [{ event, line }] : [];
  });
}

/**
 * Lets the user choose a file, or drop one on the page.
 * @param {(name: string, text: string) => void} onFile
 * @param {(problem: string) => void} onProblem
 */
export function acceptFiles(onFile, onProblem) {
  const input = /** @type {HTMLInputElement} */ (byId("file"));
  const take = async (/** @type {File | undefined} */ file) => {
    if (!file) return;
    if (file.size > MAX_FILE_BYTES) return onProblem("The file is over 256 MiB.");
    onFile(file.name, await file.text());
  };
  byId("open-file").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    void take(input.files?.[0]);
    input.value = "";
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    void take(event.dataTransfer?.files[0]);
  });
}
