// The plot of latencies, for all servers or one.

import { duration } from "./format.js";
import { TimePlot } from "./plot.js";

/** Makes a plot of three percentiles. */
export function latencyPlot() {
  return new TimePlot({
    title: "Latency",
    series: [
      { name: "p99", title: "p99", value: ({ p99 }) => p99 },
      { name: "p95", title: "p95", value: ({ p95 }) => p95 },
      { name: "p50", title: "p50", value: ({ p50 }) => p50 },
    ],
    format: duration,
    formatTick: tickText,
    isLogarithmic: true,
  });
}

/**
 * A power of ten in microseconds.
 * @param {number} micros
 */
function tickText(micros) {
  if (micros < 1000) return `${micros} µs`;
  return micros < 1_000_000 ? `${micros / 1000} ms` : `${(micros / 1_000_000).toLocaleString("en")} s`;
}
