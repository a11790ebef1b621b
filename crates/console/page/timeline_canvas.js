// Draws the timeline: the axis, the lanes, and the spans in sight.

import { clock, duration } from "./format.js";

/** @import { TimelineLane, TimelineSpan } from "./timeline_spans.js" */

const AXIS = 26;
const HEAD = 19;
const ROW = 15;
const GAP = 8;

/** The steps of the axis, in milliseconds. */
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000];

/** The least distance of two labels of the axis, in pixels. */
const LABEL_WIDTH = 110;

/**
 * @typedef {{start: number, end: number, now: number, scroll: number, selected: TimelineSpan | undefined, hovered: TimelineSpan | undefined}} TimelineWindow
 * @typedef {{span: TimelineSpan, left: number, top: number, width: number}} DrawnSpan
 */

export class TimelineCanvas {
  element = document.createElement("canvas");
  /** The spans that were drawn, for the pointer. @type {DrawnSpan[]} */
  drawn = [];
  /** The height of all lanes. */
  height = 0;
  /** Where each lane begins, before scrolling. @type {Map<TimelineLane, number>} */
  #tops = new Map();
  /** @type {Record<string, string>} */
  #colors = {};
  #theme = "";

  constructor() {
    this.element.setAttribute("aria-hidden", "true");
  }

  get width() {
    return this.element.clientWidth;
  }

  /** The place of a span in all lanes: its top and its bottom. @param {TimelineSpan} span */
  placeOf(span) {
    const top = (this.#tops.get(span.lane) ?? 0) + HEAD + span.row * ROW;
    return { top, bottom: top + ROW };
  }

  /** The height that is left for the lanes. */
  get room() {
    return this.element.clientHeight - AXIS;
  }

  /**
   * @param {TimelineLane[]} lanes
   * @param {TimelineWindow} view
   */
  draw(lanes, view) {
    const canvas = this.element;
    const context = canvas.getContext("2d");
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!context || width === 0 || height === 0) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    this.#readColors();
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = this.#color("ground");
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    this.drawn = [];
    this.#drawAxis(context, view, width, height);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height - AXIS);
    context.clip();
    let top = 0;
    this.#tops.clear();
    for (const lane of lanes) {
      this.#tops.set(lane, top);
      const rows = Math.max(1, lane.last.length);
      const laneHeight = HEAD + rows * ROW + GAP;
      const at = AXIS + top - view.scroll;
      if (at + laneHeight > AXIS && at < height) this.#drawLane(context, lane, view, at, laneHeight, width);
      top += laneHeight;
    }
    this.height = top;
    context.restore();
  }

  /** Reads the colours of the theme, when it has changed. */
  #readColors() {
    const theme = `${document.documentElement.dataset.theme} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
    if (this.#theme === theme) return;
    this.#theme = theme;
    const style = getComputedStyle(document.documentElement);
    // The names of both themes are resolved by an element, since a property of its own is a text.
    const probe = this.element;
    this.#colors = {};
    for (const name of ["ground", "raised", "line", "strong-line", "text", "quiet", "chosen", "blue", "red", "red-ground", "amber", "amber-ground", "green", "green-ground"]) {
      probe.style.color = `var(--${name})`;
      this.#colors[name] = getComputedStyle(probe).color;
    }
    this.#colors.font = `11px ${style.fontFamily}`;
  }

  /** @param {string} name */
  #color(name) {
    return this.#colors[name] ?? "";
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {TimelineWindow} view
   * @param {number} width
   * @param {number} height
   */
  #drawAxis(context, view, width, height) {
    const length = view.end - view.start;
    const step = STEPS.find((each) => (each / length) * width >= LABEL_WIDTH) ?? 86_400_000;
    context.font = this.#color("font");
    for (let tick = Math.ceil(view.start / step) * step; tick <= view.end; tick += step) {
      const x = Math.round(((tick - view.start) / length) * width) + 0.5;
      context.strokeStyle = this.#color("line");
      line(context, x, AXIS - 6, x, height);
      context.fillStyle = this.#color("quiet");
      const text = step >= 1000 ? clock(tick).slice(0, 8) : step >= 1 ? clock(tick) : `${clock(tick)} +${duration(Math.round((tick % 1) * 1000))}`;
      context.fillText(text, x + 4, AXIS / 2);
    }
    context.strokeStyle = this.#color("strong-line");
    line(context, 0, AXIS - 0.5, width, AXIS - 0.5);
    const now = ((view.now - view.start) / length) * width;
    if (now >= 0 && now <= width) {
      context.strokeStyle = this.#color("blue");
      line(context, Math.round(now) + 0.5, AXIS, Math.round(now) + 0.5, height);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {TimelineLane} lane
   * @param {TimelineWindow} view
   * @param {number} top
   * @param {number} height
   * @param {number} width
   */
  #drawLane(context, lane, view, top, height, width) {
    const length = view.end - view.start;
    const toX = (/** @type {number} */ time) => ((time - view.start) / length) * width;
    if (lane.kind === "hub") {
      context.fillStyle = this.#color("raised");
      context.fillRect(0, top, width, height);
    }
    context.strokeStyle = this.#color("line");
    line(context, 0, top + height - 0.5, width, top + height - 0.5);
    for (const band of lane.bands) {
      const [from, to] = [Math.max(0, toX(band.start)), Math.min(width, toX(band.end ?? view.now))];
      if (to <= from) continue;
      context.fillStyle = this.#color(bandColor(band.state));
      context.fillRect(from, top, to - from, 3);
    }
    for (const span of lane.spans) {
      const end = span.end ?? view.now;
      if (end < view.start || span.start > view.end) continue;
      const from = Math.max(-2, toX(span.start));
      const to = Math.min(width + 2, toX(end));
      this.#drawSpan(context, span, from, top + HEAD + span.row * ROW, Math.max(2, to - from), view);
    }
    context.font = this.#color("font");
    const name = lane.kind === "hub" ? "Hub" : lane.name;
    const kind = lane.kind === "hub" ? "" : lane.kind === "client" ? "client" : "server";
    context.fillStyle = this.#color("text");
    context.fillText(shortened(name), 8, top + HEAD / 2 + 1, width - 16);
    const at = 8 + context.measureText(shortened(name)).width + 8;
    context.fillStyle = this.#color("quiet");
    context.fillText(kind, at, top + HEAD / 2 + 1);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {TimelineSpan} span
   * @param {number} left
   * @param {number} top
   * @param {number} width
   * @param {TimelineWindow} view
   */
  #drawSpan(context, span, left, top, width, view) {
    const [fill, stroke] = spanColors(span);
    const height = ROW - 3;
    context.fillStyle = this.#color(fill);
    context.fillRect(left, top, width, height);
    if (span.kind === "question" && width > 6) this.#hatch(context, left, top, width, height, this.#color(stroke));
    context.strokeStyle = this.#color(stroke);
    const isMarked = span === view.selected || span === view.hovered;
    context.lineWidth = isMarked ? 2 : 1;
    if (span.end === undefined) context.setLineDash([4, 3]);
    if (width > 3) context.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
    else {
      context.fillStyle = this.#color(stroke);
      context.fillRect(left, top, width, height);
    }
    context.setLineDash([]);
    context.lineWidth = 1;
    if (span === view.selected) {
      context.strokeStyle = this.#color("text");
      context.strokeRect(left - 1.5, top - 1.5, width + 3, height + 3);
    }
    this.drawn.push({ span, left, top, width });
    if (width < 44) return;
    context.save();
    context.beginPath();
    context.rect(left, top, width - 4, height);
    context.clip();
    context.font = this.#color("font");
    context.fillStyle = this.#color("text");
    context.fillText(shortened(span.label), Math.max(left, 0) + 5, top + height / 2 + 0.5);
    context.restore();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} left
   * @param {number} top
   * @param {number} width
   * @param {number} height
   * @param {string} color
   */
  #hatch(context, left, top, width, height, color) {
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.strokeStyle = color;
    context.globalAlpha = 0.45;
    for (let x = left - height; x < left + width; x += 6) line(context, x, top + height, x + height, top);
    context.restore();
  }

  /**
   * The span at a place of the canvas; a narrow one is found beside itself, too.
   * @param {number} x
   * @param {number} y
   */
  spanAt(x, y) {
    const near = this.drawn.filter(({ left, top, width }) => y >= top && y < top + ROW && x >= left - 4 && x <= left + width + 4);
    const distance = (/** @type {DrawnSpan} */ { left, width }) => (x < left ? left - x : x > left + width ? x - left - width : 0);
    return near.sort((a, b) => distance(a) - distance(b) || a.width - b.width)[0]?.span;
  }
}

/** @param {string} text */
function shortened(text) {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

/** @param {string} state */
function bandColor(state) {
  if (state === "ready" || state === "connected") return "green";
  if (state === "failed" || state === "needs-auth") return "red";
  return state === "connecting" ? "amber" : "strong-line";
}

/**
 * @param {TimelineSpan} span
 * @returns {readonly [string, string]} the names of its colours
 */
function spanColors({ kind, outcome, lane }) {
  if (kind === "stream") return ["green-ground", "green"];
  if (kind === "question") return ["amber-ground", "amber"];
  if (outcome === "error" || outcome === "tool_error") return ["red-ground", "red"];
  if (outcome === "cancelled") return ["ground", "strong-line"];
  return lane.kind === "hub" ? ["chosen", "quiet"] : ["chosen", "blue"];
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 */
function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}
