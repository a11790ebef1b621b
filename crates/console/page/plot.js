// Plots of calls, drawn as SVG: time to the right, the newest at the edge. The arrow keys move a cursor that is read out.

import { element, setText } from "./dom.js";

/** @import { FigureHistory, FigurePoint } from "./figures.js" */

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 108;
const TOP = 8;
const BOTTOM = 18;
const LEFT = 52;
const RIGHT = 8;

/** Slots without calls that a line crosses. */
const BRIDGED = 6;

/**
 * @typedef {object} PlotSeries
 * @property {string} name its class, which has its colour
 * @property {string} title
 * @property {(point: FigurePoint) => number} value
 * @property {boolean} [isArea] a filled area from zero on, or else a line between the points
 */

/**
 * @typedef {object} PlotOptions
 * @property {string} title
 * @property {PlotSeries[]} series
 * @property {(value: number) => string} format
 * @property {(value: number) => string} [formatTick] for the axis, where it differs
 * @property {boolean} [isLogarithmic]
 */

/**
 * Makes an element of a drawing; its attributes are numbers and classes, and nothing that comes from a peer.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

export class TimePlot {
  root;
  #options;
  #svg = shape("svg", { class: "plot", "aria-hidden": "true" });
  #readout = element("output", { class: "quiet" });
  /** @type {FigureHistory | undefined} */
  #history;
  /** How many slots before the newest the cursor is; -1 without one. */
  #cursor = -1;
  #width = 0;
  #drawn = -1;

  /** @param {PlotOptions} options */
  constructor(options) {
    this.#options = options;
    const keys = options.series.map(({ name, title }) => element("span", { class: `plot-key ${name}` }, title));
    const stage = element("div", { class: "plot-stage", tabindex: 0, role: "group", "aria-label": `${options.title}; the arrow keys move a cursor` });
    stage.append(this.#svg);
    this.root = element("figure", { class: "plot-box" },
      element("figcaption", {}, element("span", { class: "plot-title" }, options.title), ...keys, this.#readout), stage);
    stage.addEventListener("pointermove", (event) => this.#point(event.clientX - stage.getBoundingClientRect().left));
    stage.addEventListener("pointerleave", () => this.#move(-1));
    stage.addEventListener("keydown", (event) => this.#key(event));
    stage.addEventListener("blur", () => this.#move(-1));
    new ResizeObserver(([entry]) => {
      this.#width = Math.floor(entry?.contentRect.width ?? 0);
      this.#redraw();
    }).observe(stage);
  }

  /** @param {FigureHistory} history */
  draw(history) {
    if (this.#history === history && this.#drawn === history.version) return;
    this.#history = history;
    this.#drawn = history.version;
    this.#redraw();
  }

  #redraw() {
    const history = this.#history;
    if (!history || this.#width < LEFT + RIGHT + 20) return;
    const scale = this.#scale(history);
    this.#svg.setAttribute("viewBox", `0 0 ${this.#width} ${HEIGHT}`);
    this.#svg.setAttribute("height", String(HEIGHT));
    const parts = [...this.#axes(scale, history.minutes)];
    for (const series of this.#options.series) {
      const path = series.isArea ? this.#area(history, series, scale) : this.#line(history, series, scale);
      if (path) parts.push(shape("path", { class: `${series.isArea ? "area" : "curve"} ${series.name}`, d: path }));
    }
    if (this.#cursor >= 0) {
      const x = this.#x(history, history.slot - 1 - this.#cursor) + this.#slotWidth(history) / 2;
      parts.push(shape("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
    }
    this.#svg.replaceChildren(...parts);
    this.#drawReadout(history);
  }

  /** @param {FigureHistory} history */
  #scale(history) {
    const values = history.points.flatMap((point) => this.#options.series.map(({ value }) => value(point)));
    const most = Math.max(0, ...values);
    if (!this.#options.isLogarithmic) {
      const top = niceCeiling(most);
      return { ticks: [0, top / 2, top], y: (/** @type {number} */ value) => this.#y(value / top) };
    }
    const positive = values.filter((value) => value > 0);
    const low = Math.floor(Math.log10(Math.min(1000, ...positive)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(10_000, most))));
    const step = Math.ceil((high - low) / 3);
    const ticks = [];
    for (let power = low; power <= high; power += step) ticks.push(10 ** power);
    return { ticks, y: (/** @type {number} */ value) => this.#y((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) };
  }

  /** @param {number} part from 0 to 1 */
  #y(part) {
    return HEIGHT - BOTTOM - Math.min(Math.max(part, 0), 1) * (HEIGHT - BOTTOM - TOP);
  }

  /** @param {FigureHistory} history */
  #slotWidth(history) {
    return (this.#width - LEFT - RIGHT) / history.slots;
  }

  /**
   * @param {FigureHistory} history
   * @param {number} slot
   */
  #x(history, slot) {
    return LEFT + (slot - history.slot + history.slots) * this.#slotWidth(history);
  }

  /**
   * @param {{ticks: number[], y: (value: number) => number}} scale
   * @param {number} shown the minutes
   */
  *#axes({ ticks, y }, shown) {
    for (const tick of ticks) {
      const at = y(tick);
      yield shape("line", { class: "grid-line", x1: LEFT, x2: this.#width - RIGHT, y1: at, y2: at });
      const label = shape("text", { class: "tick", x: LEFT - 6, y: at + 4, "text-anchor": "end" });
      label.textContent = (this.#options.formatTick ?? this.#options.format)(tick);
      yield label;
    }
    const step = shown > 15 ? 15 : shown > 5 ? 5 : 1;
    // Where there is little room, every other label is left out.
    const every = ((this.#width - LEFT - RIGHT) * step) / shown < 64 ? 2 : 1;
    for (let minutes = shown; minutes >= 0; minutes -= step) {
      if ((minutes / step) % every !== 0) continue;
      const x = LEFT + ((shown - minutes) / shown) * (this.#width - LEFT - RIGHT);
      const anchor = minutes === shown ? "start" : minutes === 0 ? "end" : "middle";
      const label = shape("text", { class: "tick", x, y: HEIGHT - 4, "text-anchor": anchor });
      label.textContent = minutes === 0 ? "now" : `−${minutes} min`;
      yield label;
    }
  }

  /**
   * @param {FigureHistory} history
   * @param {PlotSeries} series
   * @param {{y: (value: number) => number}} scale
   */
  #area(history, series, { y }) {
    const width = Math.max(this.#slotWidth(history), 1);
    return history.points.map((point) => {
      const value = series.value(point);
      if (value === 0) return "";
      const [x, top] = [this.#x(history, point.slot), y(value)];
      return `M${x.toFixed(1)} ${y(0)}V${top.toFixed(1)}h${width.toFixed(2)}V${y(0)}Z`;
    }).join("");
  }

  /**
   * @param {FigureHistory} history
   * @param {PlotSeries} series
   * @param {{y: (value: number) => number}} scale
   */
  #line(history, series, { y }) {
    const width = Math.max(this.#slotWidth(history), 1.5);
    let last = -Infinity;
    return history.points.map((point) => {
      const value = series.value(point);
      if (value === 0) return "";
      const command = point.slot - last <= BRIDGED ? "L" : "M";
      last = point.slot;
      return `${command}${this.#x(history, point.slot).toFixed(1)} ${y(value).toFixed(1)}h${width.toFixed(2)}`;
    }).join("");
  }

  /** @param {number} x */
  #point(x) {
    const history = this.#history;
    if (!history) return;
    const slot = Math.floor((x - LEFT) / this.#slotWidth(history));
    this.#move(Math.min(Math.max(history.slots - 1 - slot, 0), history.slots - 1));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: 1, ArrowRight: -1, PageUp: 30, PageDown: -30, Home: Infinity, End: -Infinity };
    const step = steps[event.key];
    const most = (this.#history?.slots ?? 1) - 1;
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.#move(Math.min(Math.max(this.#cursor + step, 0), most));
  }

  /** @param {number} cursor */
  #move(cursor) {
    if (this.#cursor === cursor) return;
    this.#cursor = cursor;
    this.#redraw();
  }

  /** @param {FigureHistory} history */
  #drawReadout(history) {
    if (this.#cursor < 0) return setText(this.#readout, "");
    const slot = history.slot - 1 - this.#cursor;
    const point = history.points.find((known) => known.slot === slot);
    const seconds = (this.#cursor + 1) * history.slotSeconds;
    const ago = seconds < 60 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
    const { series, format } = this.#options;
    const values = point ? series.map(({ title, value }) => `${title} ${format(value(point))}`).join(", ") : "no calls";
    setText(this.#readout, `${ago}: ${values}`);
  }
}

/**
 * Draws a small plot of some numbers into an element.
 * @param {HTMLElement} target
 * @param {number[]} values
 * @param {string} label
 */
export function sparkline(target, values, label) {
  const state = values.join(" ");
  if (target.dataset.drawn === state) return;
  target.dataset.drawn = state;
  target.title = label;
  if (values.length === 0) return target.replaceChildren();
  const most = Math.max(1, ...values);
  const drawing = shape("svg", { class: "spark", viewBox: `0 0 ${values.length} 16`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const path = values.map((value, at) => (value === 0 ? "" : `M${at} 16V${(16 - (value / most) * 15).toFixed(1)}h1V16Z`)).join("");
  drawing.append(shape("path", { class: "area calls", d: path }));
  target.replaceChildren(drawing);
}

/**
 * The next of 1, 2 and 5 with zeros that is not below a value, and at least 2.
 * @param {number} value
 */
function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 2)));
  return [1, 2, 4, 5, 10].map((step) => step * power).find((step) => step >= value && step >= 2) ?? 10 * power;
}
