// The live events: one line of JSON each, continued after the last one that was read.

import { SignedOut, api } from "./session.js";

/** @import { HubEvent } from "./types.d.ts" */

/** The first and the longest wait between two attempts, in milliseconds. */
const FIRST_WAIT = 250;
const LONGEST_WAIT = 5000;

/** A stream without even a blank line for this long is dead. */
const SILENCE = 40_000;

/**
 * @typedef {"connecting" | "live" | "lost" | "signed-out" | "ended"} StreamState
 */

/**
 * Splits lines that arrive in pieces.
 */
export class LineSplitter {
  #rest = "";

  /**
   * @param {string} piece
   * @returns {string[]}
   */
  push(piece) {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.filter((line) => line !== "");
  }
}

/**
 * Reads one line.
 * @param {string} line
 * @returns {HubEvent | undefined}
 */
export function parseEvent(line) {
  try {
    const event = JSON.parse(line);
    return typeof event === "object" && event !== null && typeof event.kind === "string" ? event : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Follows the events of the hub until it is stopped.
 */
export class EventStream {
  #stop = new AbortController();
  #last = -1;
  #onEvent;
  #onState;

  /**
   * @param {(event: HubEvent, line: string) => void} onEvent
   * @param {(state: StreamState) => void} onState
   */
  constructor(onEvent, onState) {
    this.#onEvent = onEvent;
    this.#onState = onState;
  }

  stop() {
    this.#stop.abort();
  }

  async follow() {
    let wait = FIRST_WAIT;
    this.#onState("connecting");
    while (!this.#stop.signal.aborted) {
      try {
        await this.#read(() => { wait = FIRST_WAIT; });
      } catch (error) {
        if (error instanceof SignedOut) return this.#onState("signed-out");
      }
      if (this.#stop.signal.aborted) return;
      this.#onState("lost");
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  /** @param {() => void} onOpen */
  async #read(onOpen) {
    const quiet = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, quiet.signal]);
    let timer = setTimeout(() => quiet.abort(), SILENCE);
    try {
      const response = await api(this.#last < 0 ? "events" : `events?after=${this.#last}`, { signal });
      if (!response.body) throw new Error("no body");
      onOpen();
      this.#onState("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const splitter = new LineSplitter();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), SILENCE);
        for (const line of splitter.push(value)) this.#take(line);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {string} line */
  #take(line) {
    const event = parseEvent(line);
    if (!event) return;
    // What was read before the connection broke may come again.
    if (typeof event.seq === "number") {
      if (event.seq <= this.#last) return;
      this.#last = event.seq;
    }
    this.#onEvent(event, line);
  }
}
