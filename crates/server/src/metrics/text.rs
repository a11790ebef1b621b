//! The text format of Prometheus, version 0.0.4: families of samples, each sample with its labels.
//!
//! It is a few lines for every kind of family, and written here so that labels are in the documented order.

use std::fmt::{self, Write as _};
use std::sync::atomic::Ordering;

use trunkline_protocol::{Method, Revision};

use super::series::{CallSeries, MetricOutcome};
use super::{Metrics, UpstreamItem, process};

/// A series with the labels that identify it.
type LabelledSeries<'a> = (Vec<(&'static str, &'a str)>, &'a CallSeries);

/// Writes all metrics.
pub(super) fn write(metrics: &Metrics) -> String {
    let mut page = MetricsPage { text: String::with_capacity(8 * 1024) };
    let tools = metrics.inner.tools.load();
    let methods = Method::ALL.iter().zip(&metrics.inner.methods);
    let of_tools = tools.iter().map(|(name, series)| (&**name, &**series));
    let all: Vec<LabelledSeries<'_>> = methods
        .map(|(method, series)| (vec![("mcp_method_name", method.as_str())], series))
        .chain(of_tools.chain([("other", &*metrics.inner.other_tools)]).map(|(name, series)| {
            (vec![("mcp_method_name", Method::ToolsCall.as_str()), ("gen_ai_tool_name", name)], series)
        }))
        .filter(|(_, series)| !series.is_unused())
        .collect();
    durations(&mut page, &all);
    outcomes(&mut page, &all);
    page.family("mcp_server_requests_total", "counter", "Calls by the revision that they speak.");
    for (revision, count) in Revision::ALL.iter().zip(&metrics.inner.revisions) {
        let labels = [("mcp_protocol_version", revision.as_str())];
        page.sample("mcp_server_requests_total", &labels, count.load(Ordering::Relaxed));
    }
    page.family("mcp_server_refusals_total", "counter", "Refusals by their row in the table of refusals.");
    for (row, count) in process::refusals() {
        page.sample("mcp_server_refusals_total", &[("refusal", row)], count);
    }
    let load = metrics.load();
    page.gauge("mcp_server_calls_running", "Calls that run.", load.running);
    page.gauge(
        "mcp_server_calls_suspended",
        "Calls that wait for an answer in another request.",
        load.suspended,
    );
    page.gauge("mcp_server_unread_bytes", "Memory that is held for what peers have not read.", load.unread);
    let name = "mcp_server_stored_sessions";
    page.family(name, "gauge", "Legacy sessions in stores, by the kind of store.");
    for (kind, count) in metrics.stored_sessions() {
        page.sample(name, &[("store", kind)], count);
    }
    process_counters(&mut page);
    page.text
}

/// Writes the gauges and counters of the whole process.
fn process_counters(page: &mut MetricsPage) {
    page.gauge("mcp_server_sessions", "Legacy sessions on this node.", process::sessions());
    page.gauge("mcp_server_streams", "Event streams that are open.", process::streams());
    let name = "mcp_server_evicted_sessions_total";
    page.family(name, "counter", "Idle legacy sessions that were ended in favour of a new one.");
    for (limit, count) in process::evicted_sessions() {
        page.sample(name, &[("limit", limit)], count);
    }
    page.family("mcp_server_panics_total", "counter", "Handlers that panicked.");
    page.sample("mcp_server_panics_total", &[], process::panics());
    let name = "mcp_server_unused_channels_total";
    page.family(name, "counter", "Channels that were closed without a first request.");
    page.sample(name, &[], process::unused_channels());
    let name = "mcp_server_refused_connections_total";
    page.family(name, "counter", "Connections that were closed before a request was served.");
    for (reason, count) in process::refused_connections() {
        page.sample(name, &[("reason", reason)], count);
    }
    page.family(
        "mcp_server_slow_readers_total",
        "counter",
        "Connections that were closed because the peer did not read.",
    );
    for (reason, count) in process::slow_readers() {
        page.sample("mcp_server_slow_readers_total", &[("reason", reason)], count);
    }
    let name = "trunkline_upstream_items_total";
    page.family(
        name,
        "counter",
        "Items and results of upstream servers that were not passed on as they are.",
    );
    for kind in UpstreamItem::ALL {
        page.sample(name, &[("kind", kind.label())], kind.counted());
    }
    let name = "trunkline_bus_messages_total";
    page.family(name, "counter", "Messages between processes that share sessions, by kind and outcome.");
    for (kind, outcome, count) in crate::bus::bus_messages() {
        page.sample(name, &[("kind", kind), ("outcome", outcome)], count);
    }
    page.family("mcp_server_dropped_notices_total", "counter", "Notices of calls that were dropped unread.");
    for (kind, count) in process::dropped_notifications() {
        page.sample("mcp_server_dropped_notices_total", &[("kind", kind)], count);
    }
}

fn durations(page: &mut MetricsPage, all: &[LabelledSeries<'_>]) {
    page.family("mcp_server_operation_duration_seconds", "histogram", "Time from a request to its answer.");
    for (labels, series) in all {
        let (buckets, sum) = series.histogram();
        let mut below = 0;
        for (end, count) in buckets {
            below += count;
            let end = if end == f64::MAX { "+Inf".to_owned() } else { end.to_string() };
            let bucket: Vec<_> = labels.iter().copied().chain([("le", &*end)]).collect();
            page.sample("mcp_server_operation_duration_seconds_bucket", &bucket, below);
        }
        page.sample("mcp_server_operation_duration_seconds_sum", labels, sum);
        page.sample("mcp_server_operation_duration_seconds_count", labels, below);
    }
}

fn outcomes(page: &mut MetricsPage, all: &[LabelledSeries<'_>]) {
    page.family("mcp_server_operations_total", "counter", "Calls by how they ended.");
    for (labels, series) in all {
        for ended in MetricOutcome::ALL.into_iter().filter(|ended| series.outcome_count(*ended) > 0) {
            let labels: Vec<_> = labels.iter().copied().chain([("outcome", ended.label())]).collect();
            page.sample("mcp_server_operations_total", &labels, series.outcome_count(ended));
        }
    }
}

/// The text as it grows; writing to a string cannot fail.
struct MetricsPage {
    text: String,
}

impl MetricsPage {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.text.push_str(name);
        let mut before = '{';
        for (label, value) in labels {
            let _ = write!(self.text, "{before}{label}=\"");
            value.chars().for_each(|character| self.escaped(character));
            self.text.push('"');
            before = ',';
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl fmt::Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn escaped(&mut self, character: char) {
        match character {
            '\\' => self.text.push_str("\\\\"),
            '"' => self.text.push_str("\\\""),
            '\n' => self.text.push_str("\\n"),
            other => self.text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_label_values_are_escaped() {
        let mut page = MetricsPage { text: String::new() };
        page.sample("x", &[("a", "one\"} 1\nx{a=\"two\\"), ("b", "c")], 1);
        assert_eq!(page.text, "x{a=\"one\\\"} 1\\nx{a=\\\"two\\\\\",b=\"c\"} 1\n");
    }
}
