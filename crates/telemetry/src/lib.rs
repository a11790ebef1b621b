//! Traces and metrics of a hub for OpenTelemetry, by the semantic conventions for MCP.
//!
//! A subscriber of the hub's event stream makes spans and metrics of calls, without messages and without their content,
//! and exports them in batches over OTLP/HTTP with protobuf. The messages of OTLP are few, so that they are written here
//! and need no further packages.
//!
//! # Invariants
//!
//! - Spans have no arguments, results, messages of errors or queries of URIs: `spans_contain_no_content_of_calls`.
//! - A collector that is slow or down never delays a call, costs bounded memory, and is logged once:
//!   `queue_drops_and_counts_spans_beyond_its_limit`,
//!   `failing_collector_delays_no_call_and_gets_the_spans_later`.
//! - No secret of a header is shown: `settings_never_show_headers`.
#![forbid(unsafe_code)]

mod attribute;
mod call_spans;
mod environment;
mod exporter;
mod metrics;
mod otlp;
mod pipeline;
mod settings;
mod signal_queue;
mod span;

pub use self::environment::EnvironmentError;
pub use self::pipeline::Telemetry;
pub use self::settings::{TelemetryEndpoint, TelemetryError, TelemetrySettings};
