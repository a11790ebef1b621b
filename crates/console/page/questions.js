// The page of questions to clients: the operator may answer in the place of one, and the first answer counts.

import { element, pageLink, setText } from "./dom.js";
import { clock, isolated } from "./format.js";
import { questionControls, questionTitle } from "./question_form.js";
import { QuestionWatch } from "./question_watch.js";
import { registerPage } from "./registry.js";
import { routeHash } from "./route.js";
import { RefusedRequest } from "./session.js";

/** @import { ClientQuestion, JsonMap } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { AnsweredQuestion } from "./question_watch.js" */

/** @type {QuestionWatch | undefined} */
let watch;

/** @implements {PageView} */
class QuestionsView {
  #app;
  #watch;
  #cards = element("div", { class: "question-cards" });
  #answered = element("ol", { class: "answered" });
  #answeredSection = element("section", { "aria-labelledby": "answered-title", hidden: true },
    element("h2", { id: "answered-title" }, "Over"), this.#answered);
  #none = element("p", { class: "quiet" }, "No client is being asked anything.");
  /** The cards by the number of their question, so that what was typed stays. @type {Map<number, HTMLElement>} */
  #shown = new Map();
  #drawn = -1;

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   * @param {QuestionWatch} watched
   */
  constructor(app, root, watched) {
    this.#app = app;
    this.#watch = watched;
    root.append(
      element("section", { "aria-labelledby": "open-title" }, element("h2", { id: "open-title" }, "Waiting for an answer"),
        element("p", { class: "quiet" }, "Servers ask clients of the hub these questions. The first answer counts: if you answer, the request to the client is cancelled. Clients of 2026-07-28 get questions as the result of their call, so only they can answer."),
        this.#none, this.#cards),
      this.#answeredSection);
  }

  draw() {
    if (this.#drawn === this.#watch.version) return;
    this.#drawn = this.#watch.version;
    const { open, answered } = this.#watch;
    for (const [number, card] of this.#shown) {
      if (open.some((question) => question.number === number)) continue;
      card.remove();
      this.#shown.delete(number);
    }
    for (const question of open) {
      if (this.#shown.has(question.number)) continue;
      const card = this.#cardOrProblem(question);
      this.#shown.set(question.number, card);
      this.#cards.append(card);
    }
    this.#none.hidden = open.length > 0;
    this.#answeredSection.hidden = answered.length === 0;
    this.#answered.replaceChildren(...answered.map((each) => this.#over(each)));
  }

  /**
   * A question that cannot be shown does not hide the others.
   * @param {ClientQuestion} question
   */
  #cardOrProblem(question) {
    try {
      return this.#card(question);
    } catch (error) {
      return element("article", { class: "question-card", "data-number": question.number },
        element("p", { class: "error-text" }, `This question cannot be shown: ${String(error)}`));
    }
  }

  /** @param {ClientQuestion} question */
  #card(question) {
    const { method, params } = question.request;
    const title = questionTitle(method, params);
    const problem = element("p", { class: "error-text", role: "alert" });
    const controls = question.answerable
      ? questionControls(method, params, (response) => void this.#answer(question, response, problem))
      : element("div", {}, element("p", { class: "question-message" }, typeof params.message === "string" ? params.message : title),
        element("p", { class: "quiet" }, "Only the user of this client can answer this."));
    return element("article", { class: "question-card", "aria-label": title, "data-number": question.number },
      element("h3", {}, title), this.#about(question), controls, problem);
  }

  /** @param {ClientQuestion} question */
  #about(question) {
    const call = question.call === undefined ? undefined : this.#app.store.calls.get(question.call);
    const what = [question.client || "a client", question.name || question.method, call?.server ?? ""].filter(Boolean).map(isolated).join("  →  ");
    return element("p", { class: "quiet" }, what, element("span", { class: "chip" }, question.revision),
      call ? pageLink("Show the call", routeHash("calls", [], { call: call.id }), { class: "call-link" }) : undefined);
  }

  /**
   * @param {ClientQuestion} question
   * @param {JsonMap} response
   * @param {HTMLElement} problem
   */
  async #answer(question, response, problem) {
    try {
      await this.#watch.answer(question, response);
    } catch (error) {
      setText(problem, error instanceof RefusedRequest ? error.reason : String(error));
    }
  }

  /** @param {AnsweredQuestion} over */
  #over({ question, by, time }) {
    const words = /** @type {Readonly<Record<string, string>>} */ ({ client: "answered by the client", operator: "answered in the console" });
    const { method, params } = question.request;
    return element("li", {}, element("span", { class: "mono quiet" }, clock(time)), `  ${questionTitle(method, params)} for ${isolated(question.client) || "a client"}: `,
      element("strong", {}, words[by] ?? "over"));
  }
}

registerPage({
  id: "questions", title: "Questions",
  isOffered: (report) => report?.role === "operator" && report.live,
  start: (app) => { watch ??= new QuestionWatch(app); },
  create: (app, root) => new QuestionsView(app, root, watch ??= new QuestionWatch(app)),
});
