// The questions that clients of the hub were asked and have not answered, for the operator: read again whenever the
// events say that this may have changed.

import { announce, byId, setText } from "./dom.js";
import { SignedOut, api } from "./session.js";
import { showSignIn } from "./sign_in.js";

/** @import { ClientQuestion, HubEvent, JsonMap } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */

/** How long events are gathered before the list is read, in milliseconds. */
const GATHER = 60;

/** The answers that are remembered, for the list of those that are over. */
const MAX_ANSWERED = 30;

/**
 * @typedef {{question: ClientQuestion, by: string, time: number}} AnsweredQuestion
 */

export class QuestionWatch {
  /** @type {ClientQuestion[]} */
  open = [];
  /** Those that are over, the newest first. @type {AnsweredQuestion[]} */
  answered = [];
  /** Grows with every change. */
  version = 0;
  #app;
  #timer = 0;
  #isReading = false;
  #isStale = false;
  /** Who answered a call's question last. @type {Map<string, string>} */
  #answerers = new Map();

  /** @param {ConsoleApp} app */
  constructor(app) {
    this.#app = app;
    app.listeners.add((event) => this.#take(event));
    this.#later();
  }

  /**
   * Answers a question in the place of its client.
   * @param {ClientQuestion} question
   * @param {JsonMap} response
   */
  async answer(question, response) {
    try {
      await api("answers", { method: "POST", body: JSON.stringify({ number: question.number, response }) });
      announce("Answered; the client was notified");
    } finally {
      this.#later();
    }
  }

  /** @param {HubEvent} event */
  #take(event) {
    if (event.kind === "input_answered" && event.call !== undefined && event.by !== undefined) {
      this.#answerers.delete(event.call);
      this.#answerers.set(event.call, event.by);
      const oldest = this.#answerers.keys().next();
      if (this.#answerers.size > 1000 && !oldest.done) this.#answerers.delete(oldest.value);
      const over = this.answered.find(({ question, by }) => question.call === event.call && by === "");
      if (over) {
        over.by = event.by;
        this.#changed();
      }
    }
    // A response of a client has no method; it may be to a question.
    const isResponse = event.kind === "message" && event.wire === "client" && event.direction === "received" &&
      event.message !== undefined && event.message.method === undefined;
    if (isResponse || ["input_requested", "input_answered", "call_ended", "client_gone"].includes(event.kind)) {
      if (event.kind === "input_requested" || this.open.length > 0) this.#later();
    }
  }

  #later() {
    if (this.#timer === 0) this.#timer = setTimeout(() => void this.#read(), GATHER);
  }

  async #read() {
    this.#timer = 0;
    if (!this.#app.isOperator) return;
    if (this.#isReading) {
      this.#isStale = true;
      return;
    }
    this.#isReading = true;
    try {
      const { questions } = await (await api("questions")).json();
      this.#update(questions);
    } catch (error) {
      if (error instanceof SignedOut) showSignIn("The session has ended.");
      // Else the stream shows whether the hub is there, and the next event reads the list again.
    }
    this.#isReading = false;
    if (!this.#isStale) return;
    this.#isStale = false;
    this.#later();
  }

  /** @param {ClientQuestion[]} questions */
  #update(questions) {
    const numbers = new Set(questions.map(({ number }) => number));
    const known = new Set(this.open.map(({ number }) => number));
    const over = this.open.filter(({ number }) => !numbers.has(number));
    const added = questions.filter(({ number }) => !known.has(number));
    if (over.length === 0 && added.length === 0) return;
    this.open = questions;
    const ended = over.map((question) => ({ question, by: this.#answerers.get(question.call ?? "") ?? "", time: Date.now() }));
    this.answered = [...ended, ...this.answered].slice(0, MAX_ANSWERED);
    const first = added[0];
    if (first) announce(`A server asks ${first.client || "a client"} a question`);
    this.#changed();
  }

  #changed() {
    this.version += 1;
    setText(byId("nav-questions"), this.open.length > 0 ? `Questions (${this.open.length})` : "Questions");
    this.#app.requestDraw();
  }
}
