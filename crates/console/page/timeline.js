// The timeline: what clients, the hub and servers did at the same time. A span opens its call.

import { button, element, setText } from "./dom.js";
import { clock, duration, isolated, outcomeText } from "./format.js";
import { registerPage } from "./registry.js";
import { TimelineCanvas } from "./timeline_canvas.js";
import { TimelineModel } from "./timeline_spans.js";

/** @import { ConsoleApp } from "./app.js" */
/** @import { PageView } from "./registry.js" */
/** @import { TimelineSpan } from "./timeline_spans.js" */

/** The time in sight at first, and the least and the most, in milliseconds. */
const FIRST_LENGTH = 60_000;
const LEAST_LENGTH = 1;
const MOST_LENGTH = 7 * 86_400_000;

/** How often the live timeline moves, in milliseconds; seldom for those who want little motion. */
const MOVE = 200;
const MOVE_REDUCED = 2000;

/** A pointer that moved less is a click, in pixels. */
const CLICK = 4;

/** @type {ReadonlyArray<readonly [string, string]>} */
const HELP = [
  ["← →", "Move in time"], ["+ −", "Zoom in and out"], ["↑ ↓ or j k", "Select a span"], ["Enter", "Open its call"],
  ["Home, 0", "Show everything"], ["End, l", "Follow what happens now"], ["Wheel, Ctrl wheel", "Scroll; zoom"], ["Drag", "Move in time"],
];

/** @implements {PageView} */
class TimelineView {
  help = [{ title: "Timeline", rows: HELP }];
  #app;
  #model;
  #canvas = new TimelineCanvas();
  #place = element("div", { class: "timeline-place", role: "group", tabindex: 0, "aria-label": "Timeline of calls", "aria-describedby": "timeline-selected" });
  #selectedText = element("span", { id: "timeline-selected", role: "status" });
  #open = button("Open the call", "Open the call of the selected span (Enter)", () => this.#openSelected(), { id: "timeline-open", disabled: true });
  #follow = button("Live", "Follow what happens now (l)", () => this.#setFollow(!this.#follows), { id: "timeline-live", "aria-pressed": "true" });
  #empty = element("p", { class: "notice", hidden: true }, "No calls yet.");
  #view = { start: Date.now() - FIRST_LENGTH, end: Date.now(), now: Date.now(), scroll: 0, selected: /** @type {TimelineSpan | undefined} */ (undefined), hovered: /** @type {TimelineSpan | undefined} */ (undefined) };
  #follows = true;
  #timer = 0;
  #wasLive = false;

  /**
   * @param {ConsoleApp} app
   * @param {HTMLElement} root
   */
  constructor(app, root) {
    this.#app = app;
    this.#model = new TimelineModel(app.store);
    this.#place.append(this.#canvas.element);
    root.append(
      element("div", { class: "toolbar" }, this.#follow,
        button("All", "Show everything (Home)", () => this.#showAll(), { id: "timeline-all" }),
        button("+", "Zoom in (+)", () => this.#zoom(0.5), { class: "icon-button", "aria-label": "Zoom in", id: "timeline-in" }),
        button("−", "Zoom out (−)", () => this.#zoom(2), { class: "icon-button", "aria-label": "Zoom out", id: "timeline-out" }),
        this.#selectedText, this.#open),
      element("div", { class: "timeline-body" }, this.#place, this.#empty),
      element("p", { class: "legend timeline-legend" }, ...[["call", "call"], ["failed", "failed"], ["question", "question"], ["stream", "subscription"], ["running", "not over yet"]]
        .map(([name, text]) => element("span", {}, element("span", { class: `swatch ${name}`, "aria-hidden": "true" }), ` ${text}`))));
    this.#place.addEventListener("keydown", (event) => this.#key(event));
    this.#place.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.#place.addEventListener("pointerdown", (event) => this.#drag(event));
    this.#place.addEventListener("pointermove", (event) => this.#hover(event));
    this.#place.addEventListener("pointerleave", () => this.#setHovered(undefined));
    new ResizeObserver(() => this.#app.requestDraw()).observe(this.#place);
  }

  show() {
    this.#schedule();
  }

  hide() {
    clearTimeout(this.#timer);
  }

  focus() {
    this.#place.focus({ preventScroll: true });
  }

  draw() {
    this.#model.update();
    const { isLive } = this.#app;
    // A record file is shown whole, and does not move.
    if (this.#wasLive !== isLive || (!isLive && this.#follows)) {
      this.#wasLive = isLive;
      this.#follow.hidden = !isLive;
      if (!isLive) this.#showAll();
    }
    this.#view.now = isLive ? Date.now() : Infinity;
    if (this.#follows) {
      const length = this.#view.end - this.#view.start;
      this.#view.end = Date.now() + length * 0.03;
      this.#view.start = this.#view.end - length;
    }
    const { lanes } = this.#model;
    this.#empty.hidden = lanes.length > 0;
    this.#view.scroll = Math.max(0, Math.min(this.#view.scroll, this.#canvas.height - this.#canvas.room));
    this.#canvas.draw(lanes, this.#view);
    this.#describe();
  }

  /** Moves on with the time for as long as the page is shown. */
  #schedule() {
    clearTimeout(this.#timer);
    const wait = matchMedia("(prefers-reduced-motion: reduce)").matches ? MOVE_REDUCED : MOVE;
    this.#timer = setTimeout(() => {
      if (this.#app.isLive) this.#app.requestDraw();
      this.#schedule();
    }, wait);
  }

  /** @param {boolean} follows */
  #setFollow(follows) {
    this.#follows = follows;
    this.#follow.setAttribute("aria-pressed", String(follows));
    this.#app.requestDraw();
  }

  #showAll() {
    this.#model.update();
    const { range } = this.#model;
    this.#setFollow(false);
    if (!range) return;
    const margin = Math.max((range.end - range.start) * 0.02, 1);
    this.#setWindow(range.start - margin, range.end + margin);
  }

  /**
   * @param {number} start
   * @param {number} end
   */
  #setWindow(start, end) {
    const length = Math.min(Math.max(end - start, LEAST_LENGTH), MOST_LENGTH);
    const middle = (start + end) / 2;
    this.#view.start = middle - length / 2;
    this.#view.end = middle + length / 2;
    this.#app.requestDraw();
  }

  /**
   * @param {number} factor
   * @param {number} [at] the part of the width that stays where it is
   */
  #zoom(factor, at = 0.5) {
    const { start, end } = this.#view;
    const length = Math.min(Math.max((end - start) * factor, LEAST_LENGTH), MOST_LENGTH);
    if (this.#follows) {
      this.#view.start = end - length;
      return this.#app.requestDraw();
    }
    const fixed = start + (end - start) * at;
    this.#setWindow(fixed - length * at, fixed + length * (1 - at));
  }

  /** @param {number} part of the width */
  #pan(part) {
    this.#setFollow(false);
    const step = (this.#view.end - this.#view.start) * part;
    this.#setWindow(this.#view.start + step, this.#view.end + step);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = /** @type {Readonly<Record<string, () => void>>} */ ({
      ArrowLeft: () => this.#pan(-0.1), ArrowRight: () => this.#pan(0.1), "+": () => this.#zoom(0.5), "=": () => this.#zoom(0.5), "-": () => this.#zoom(2),
      ArrowDown: () => this.#step(1), j: () => this.#step(1), ArrowUp: () => this.#step(-1), k: () => this.#step(-1),
      Enter: () => this.#openSelected(), Home: () => this.#showAll(), 0: () => this.#showAll(), End: () => this.#setFollow(true), l: () => this.#setFollow(true),
    });
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  /**
   * Selects the next span in time of those that have a call.
   * @param {number} direction
   */
  #step(direction) {
    const spans = this.#model.lanes.flatMap((lane) => lane.spans).filter(({ call }) => call)
      .sort((a, b) => a.start - b.start || a.row - b.row);
    const at = this.#view.selected ? spans.indexOf(this.#view.selected) : -1;
    const inSight = direction > 0 ? spans.findIndex(({ start }) => start >= this.#view.start) : spans.findLastIndex(({ start }) => start <= this.#view.end);
    const next = spans[at < 0 ? inSight : at + direction];
    if (next) this.#select(next);
  }

  /** @param {TimelineSpan} span */
  #select(span) {
    this.#view.selected = span;
    const { start, end } = this.#view;
    if (span.start < start || span.start > end) {
      this.#setFollow(false);
      const length = end - start;
      this.#setWindow(span.start - length * 0.3, span.start + length * 0.7);
    }
    const { top, bottom } = this.#canvas.placeOf(span);
    if (top < this.#view.scroll) this.#view.scroll = Math.max(0, top - 30);
    else if (bottom > this.#view.scroll + this.#canvas.room) this.#view.scroll = bottom - this.#canvas.room + 10;
    this.#app.requestDraw();
  }

  #openSelected() {
    const call = this.#view.selected?.call;
    if (call) this.#app.router.go("calls", [], { call: call.id });
  }

  #describe() {
    const span = this.#view.hovered ?? this.#view.selected;
    this.#open.disabled = this.#view.selected?.call === undefined;
    if (!span) return setText(this.#selectedText, "");
    const lane = span.lane.kind === "hub" ? "hub" : `${span.lane.kind} ${isolated(span.lane.name)}`;
    const took = span.end === undefined ? "not over yet" : duration((span.end - span.start) * 1000);
    const what = span.kind === "call" ? outcomeText(span.outcome) : "";
    setText(this.#selectedText, [isolated(span.label), lane, clock(span.start), took, what].filter(Boolean).join("  ·  "));
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    event.preventDefault();
    const overflow = this.#canvas.height - this.#canvas.room;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) return this.#pan((event.deltaX || event.deltaY) / this.#canvas.width);
    if (!event.ctrlKey && !event.metaKey && overflow > 0) {
      this.#view.scroll = Math.max(0, Math.min(this.#view.scroll + event.deltaY, overflow));
      return this.#app.requestDraw();
    }
    const { x } = this.#position(event);
    this.#zoom(2 ** (event.deltaY / 300), x / this.#canvas.width);
  }

  /** @param {MouseEvent} event */
  #position(event) {
    const box = this.#canvas.element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {PointerEvent} down */
  #drag(down) {
    if (down.button !== 0) return;
    const { start, end, scroll } = this.#view;
    let moved = false;
    const stop = new AbortController();
    const { signal } = stop;
    this.#place.setPointerCapture(down.pointerId);
    this.#place.addEventListener("pointermove", (event) => {
      const [x, y] = [event.clientX - down.clientX, event.clientY - down.clientY];
      if (!moved && Math.hypot(x, y) < CLICK) return;
      moved = true;
      this.#setFollow(false);
      const step = -(x / this.#canvas.width) * (end - start);
      this.#view.scroll = scroll - y;
      this.#setWindow(start + step, end + step);
    }, { signal });
    const finish = (/** @type {PointerEvent} */ event) => {
      stop.abort();
      if (moved || event.type === "pointercancel") return;
      const { x, y } = this.#position(event);
      const span = this.#canvas.spanAt(x, y);
      this.#view.selected = span;
      if (span?.call) this.#openSelected();
      else this.#app.requestDraw();
    };
    this.#place.addEventListener("pointerup", finish, { signal });
    this.#place.addEventListener("pointercancel", finish, { signal });
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const { x, y } = this.#position(event);
    this.#setHovered(this.#canvas.spanAt(x, y));
  }

  /** @param {TimelineSpan | undefined} span */
  #setHovered(span) {
    if (this.#view.hovered === span) return;
    this.#view.hovered = span;
    this.#place.classList.toggle("on-span", span?.call !== undefined);
    this.#app.requestDraw();
  }
}

registerPage({ id: "timeline", title: "Timeline", create: (app, root) => new TimelineView(app, root) });
