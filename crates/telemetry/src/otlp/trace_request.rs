use super::common::{attributes, nanos, resource, scope};
use super::proto_writer::ProtoWriter;
use crate::settings::TelemetryResource;
use crate::span::{SpanRecord, SpanRole};

/// In the flags of a span: it is sampled.
const SAMPLED: u32 = 1;
/// In the flags of a span: whether its parent is in another process is known, and is the case.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The status code for a failed span.
const STATUS_ERROR: u64 = 2;

/// Writes an `ExportTraceServiceRequest`.
pub(crate) fn trace_request(from: &TelemetryResource, spans: &[SpanRecord]) -> Vec<u8> {
    let mut writer = ProtoWriter::default();
    writer.message(1, |resource_spans| {
        resource(resource_spans, 1, from);
        resource_spans.message(2, |scope_spans| {
            scope(scope_spans, 1);
            for span in spans {
                scope_spans.message(2, |inner| write_span(inner, span));
            }
        });
    });
    writer.into_bytes()
}

fn write_span(writer: &mut ProtoWriter, span: &SpanRecord) {
    writer.bytes(1, &span.trace.to_be_bytes());
    writer.bytes(2, &span.span.to_be_bytes());
    writer.text(3, span.state.as_deref().unwrap_or_default());
    if let Some(parent) = span.parent {
        writer.bytes(4, &parent.to_be_bytes());
    }
    writer.text(5, &span.name);
    writer.uint(
        6,
        match span.role {
            SpanRole::Server => 2,
            SpanRole::Client => 3,
        },
    );
    writer.fixed64(7, nanos(span.started_at));
    writer.fixed64(8, nanos(span.ended_at));
    attributes(writer, 9, &span.attributes);
    for event in &span.events {
        writer.message(11, |inner| {
            inner.fixed64(1, nanos(event.at));
            inner.text(2, event.name);
            attributes(inner, 3, &event.attributes);
        });
    }
    if span.is_error {
        writer.message(15, |status| status.uint(3, STATUS_ERROR));
    }
    // The parent of a server span is the client's; that of a client span is the hub's own.
    let remote = if span.role == SpanRole::Server && span.parent.is_some() { IS_REMOTE } else { 0 };
    writer.fixed32(16, SAMPLED | HAS_IS_REMOTE | remote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::SpanAttributes;
    use crate::otlp::reader::ProtoMessage;
    use crate::span::SpanEvent;

    #[test]
    fn span_is_written_with_the_numbers_of_otlp() {
        let mut with = SpanAttributes::default();
        with.text("a", "é");
        with.integer("n", -1);
        with.flag("f");
        let span = SpanRecord {
            trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            span: 7,
            parent: Some(8),
            state: Some("v=1".to_owned()),
            role: SpanRole::Server,
            name: "tools/call git__log".to_owned(),
            started_at: 1_000_000,
            ended_at: 1_500_000,
            attributes: with,
            events: vec![SpanEvent {
                at: 1_200_000,
                name: "input_requested",
                attributes: SpanAttributes::default(),
            }],
            is_error: true,
        };
        let resource = TelemetryResource::new([("service.name".to_owned(), "hub".to_owned())]);
        let request =
            trace_request(&resource, &[span.clone(), SpanRecord { parent: None, is_error: false, ..span }]);
        let request = ProtoMessage::parse(&request);
        let from = request.message(1).message(1).message(1);
        assert_eq!((from.text(1), from.message(2).text(1)), ("service.name".to_owned(), "hub".to_owned()));
        let scope = request.message(1).message(2);
        assert_eq!(scope.message(1).text(1), "trunkline");
        let spans = scope.messages(2);
        let first = &spans[0];
        assert_eq!(first.bytes(1), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes());
        assert_eq!(
            (first.bytes(2), first.bytes(4)),
            (7_u64.to_be_bytes().to_vec(), 8_u64.to_be_bytes().to_vec())
        );
        assert_eq!((first.text(3), first.text(5)), ("v=1".to_owned(), "tools/call git__log".to_owned()));
        assert_eq!((first.number(6), first.number(7), first.number(8)), (2, 1_000_000_000, 1_500_000_000));
        let attributes = first.messages(9);
        assert_eq!(attributes[0].message(2).text(1), "é");
        assert_eq!(attributes[1].message(2).number(3).cast_signed(), -1);
        assert_eq!(attributes[2].message(2).number(2), 1);
        assert_eq!(first.message(11).text(2), "input_requested");
        assert_eq!((first.message(15).number(3), first.number(16)), (2, 0x301));
        assert_eq!((spans[1].bytes(4), spans[1].number(16)), (Vec::new(), 0x101));
        assert!(spans[1].messages(15).is_empty());
    }
}
