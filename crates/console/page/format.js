// Numbers and times for people: aligned, short, never ambiguous.

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

/**
 * Reads an RFC 3339 time with microseconds, of which `Date` keeps only milliseconds.
 * @param {string} text
 * @returns {number} milliseconds since 1970, with fractions
 */
export function parseTime(text) {
  const milliseconds = Date.parse(text);
  const fraction = /\.\d{3}(\d{1,3})/.exec(text);
  const rest = fraction?.[1] ? Number(fraction[1].padEnd(3, "0")) / 1000 : 0;
  return Number.isNaN(milliseconds) ? 0 : milliseconds + rest;
}

/**
 * The time of day with milliseconds.
 * @param {number} time
 */
export function clock(time) {
  return `${CLOCK.format(time)}.${String(Math.floor(time) % 1000).padStart(3, "0")}`;
}

/**
 * @param {number | undefined} micros
 */
export function duration(micros) {
  if (micros === undefined) return "";
  if (micros < 1000) return `${Math.round(micros)} µs`;
  if (micros < 10_000) return `${(micros / 1000).toFixed(2)} ms`;
  if (micros < 100_000) return `${(micros / 1000).toFixed(1)} ms`;
  if (micros < 1_000_000) return `${Math.round(micros / 1000)} ms`;
  if (micros < 60_000_000) return `${(micros / 1_000_000).toFixed(2)} s`;
  const seconds = Math.round(micros / 1_000_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/**
 * A time in seconds, in its largest unit.
 * @param {number} seconds
 */
export function span(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}

/**
 * @param {number | undefined} bytes
 */
export function size(bytes) {
  if (bytes === undefined) return "";
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 100_000) return `${(bytes / 1000).toFixed(1)} kB`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/**
 * @param {number} value
 * @param {string} one
 * @param {string} [many]
 */
export function count(value, one, many = `${one}s`) {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

/**
 * A text of a peer within others: its marks of direction end with it.
 * @param {string} text
 */
export function isolated(text) {
  return text === "" ? "" : `\u2068${text}\u2069`;
}

/** The words for what became of a call. @type {Readonly<Record<string, string>>} */
const OUTCOMES = {
  ok: "ok", tool_error: "tool error", error: "error", cancelled: "cancelled", input_required: "asks",
  running: "running", waiting: "waiting",
};

/**
 * @param {string} outcome
 */
export function outcomeText(outcome) {
  return OUTCOMES[outcome] ?? outcome;
}
