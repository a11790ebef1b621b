// The calls of the last hour as the hub counts them, in slots of some seconds.

/** @import { FigureReport, RecentFigures } from "./types.d.ts" */

/**
 * The calls of one slot.
 * @typedef {object} FigurePoint
 * @property {number} slot
 * @property {number} calls those that were not cancelled
 * @property {number} errors
 * @property {number} cancelled
 * @property {number} p50 in microseconds
 * @property {number} p95
 * @property {number} p99
 * @property {number} bytes of results
 */

/** The minutes that are kept. */
const KEPT_MINUTES = 60;

/** The minutes that are shown: as many as the hub has run, and at most an hour. */
const WINDOWS = [5, 15, KEPT_MINUTES];

/** @type {RecentFigures} */
const NO_CALLS = { seconds: 0, calls: 0, errors: 0, p50_micros: 0, p95_micros: 0, p99_micros: 0 };

export class FigureHistory {
  /** The slot that is not over. */
  slot = 0;
  slotSeconds = 10;
  recent = NO_CALLS;
  /** @type {FigurePoint[]} */
  points = [];
  /** Grows with every report. */
  version = 0;

  /** The last slot that is known, to get only what comes after it. @returns {number | undefined} */
  get last() {
    return this.points.at(-1)?.slot;
  }

  /** @param {FigureReport} report */
  take(report) {
    this.version += 1;
    // Slots are counted from the start of the hub: a smaller one is of another.
    if (report.slot < this.slot) this.points = [];
    this.slot = report.slot;
    this.slotSeconds = report.slot_seconds;
    this.recent = report.recent;
    const last = this.last ?? -1;
    this.points.push(...report.points.map(decode).filter(({ slot }) => slot > last));
    const first = report.slot - (KEPT_MINUTES * 60) / this.slotSeconds;
    this.points = this.points.filter(({ slot }) => slot >= first);
  }

  /** The minutes that are shown. */
  get minutes() {
    const age = (this.slot * this.slotSeconds) / 60;
    return WINDOWS.find((minutes) => minutes >= age) ?? KEPT_MINUTES;
  }

  /** The slots that are shown. */
  get slots() {
    return Math.ceil((this.minutes * 60) / this.slotSeconds);
  }
}

/**
 * The calls of a minute, of the last five.
 * @param {RecentFigures | undefined} recent
 */
export function callsPerMinute(recent) {
  return recent && recent.seconds > 0 ? (recent.calls * 60) / recent.seconds : 0;
}

/**
 * @param {number} rate
 */
export function rateText(rate) {
  if (rate === 0) return "0";
  return rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en");
}

/**
 * @param {number[]} point
 * @returns {FigurePoint}
 */
function decode([slot = 0, calls = 0, errors = 0, cancelled = 0, p50 = 0, p95 = 0, p99 = 0, bytes = 0]) {
  return { slot, calls, errors, cancelled, p50, p95, p99, bytes };
}
