//! The messages of OTLP 1, in protobuf. The numbers are those of `opentelemetry/proto` in its version 1.

mod common;
mod metric_request;
mod proto_writer;
#[cfg(test)]
pub(crate) mod reader;
mod trace_request;

pub(crate) use self::metric_request::metric_request;
pub(crate) use self::trace_request::trace_request;
