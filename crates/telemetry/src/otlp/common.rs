use super::proto_writer::ProtoWriter;
use crate::attribute::{AttributeValue, SpanAttributes};
use crate::settings::TelemetryResource;

/// The name of what makes the spans.
const SCOPE: &str = "trunkline";

/// Writes `KeyValue` messages.
pub(super) fn attributes(writer: &mut ProtoWriter, field: u32, attributes: &SpanAttributes) {
    for (key, value) in attributes.iter() {
        key_value(writer, field, key, value);
    }
}

fn key_value(writer: &mut ProtoWriter, field: u32, key: &str, value: &AttributeValue) {
    writer.message(field, |entry| {
        entry.text(1, key);
        entry.message(2, |any| match value {
            AttributeValue::Text(text) => any.chosen_text(1, text),
            AttributeValue::Flag(flag) => any.chosen_int(2, i64::from(*flag)),
            AttributeValue::Integer(number) => any.chosen_int(3, *number),
        });
    });
}

/// Writes a `Resource`.
pub(super) fn resource(writer: &mut ProtoWriter, field: u32, resource: &TelemetryResource) {
    writer.message(field, |inner| {
        for (key, value) in resource.attributes() {
            key_value(inner, 1, key, &AttributeValue::Text(value.to_owned()));
        }
    });
}

/// Writes an `InstrumentationScope`.
pub(super) fn scope(writer: &mut ProtoWriter, field: u32) {
    writer.message(field, |inner| {
        inner.text(1, SCOPE);
        inner.text(2, env!("CARGO_PKG_VERSION"));
    });
}

/// Returns a time in nanoseconds.
pub(super) fn nanos(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0).saturating_mul(1000)
}
