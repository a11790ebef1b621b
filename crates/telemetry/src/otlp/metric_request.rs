use super::common::{attributes, nanos, resource, scope};
use super::proto_writer::ProtoWriter;
use crate::metrics::{BOUNDS, CallMetrics, DurationHistogram, DurationMetric};
use crate::settings::TelemetryResource;

/// The counts and sums are since the start.
const CUMULATIVE: u64 = 2;

/// Writes an `ExportMetricsServiceRequest`, for a time in microseconds since 1970.
pub(crate) fn metric_request(from: &TelemetryResource, metrics: &CallMetrics, now: i64) -> Vec<u8> {
    let mut writer = ProtoWriter::default();
    writer.message(1, |resource_metrics| {
        resource(resource_metrics, 1, from);
        resource_metrics.message(2, |scope_metrics| {
            scope(scope_metrics, 1);
            for metric in DurationMetric::ALL {
                let mut series = metrics.series(metric).peekable();
                if series.peek().is_none() {
                    continue;
                }
                scope_metrics.message(2, |inner| {
                    inner.text(1, metric.name());
                    inner.text(2, metric.description());
                    inner.text(3, "s");
                    inner.message(9, |histogram| {
                        for (with, found) in series {
                            histogram.message(1, |point| {
                                write_point(point, found, (metrics.started_at(), now));
                                attributes(point, 9, with);
                            });
                        }
                        histogram.uint(2, CUMULATIVE);
                    });
                });
            }
            write_dropped(scope_metrics, metrics, now);
        });
    });
    writer.into_bytes()
}

fn write_point(writer: &mut ProtoWriter, histogram: &DurationHistogram, (started_at, now): (i64, i64)) {
    writer.fixed64(2, nanos(started_at));
    writer.fixed64(3, nanos(now));
    writer.fixed64(4, histogram.count());
    writer.double(5, histogram.sum());
    writer.packed64(6, histogram.buckets());
    writer.packed64(7, BOUNDS.iter().map(|bound| bound.to_bits()));
    writer.double(11, histogram.min());
    writer.double(12, histogram.max());
}

/// Writes how many spans and events were lost; zero shows that there is nothing to miss.
fn write_dropped(writer: &mut ProtoWriter, metrics: &CallMetrics, now: i64) {
    writer.message(2, |inner| {
        inner.text(1, "trunkline.telemetry.dropped");
        inner.text(2, "Spans and events that were not exported.");
        inner.text(3, "{item}");
        inner.message(7, |sum| {
            for (reason, count) in metrics.dropped() {
                let mut with = crate::attribute::SpanAttributes::default();
                with.text("reason", reason);
                sum.message(1, |point| {
                    point.fixed64(2, nanos(metrics.started_at()));
                    point.fixed64(3, nanos(now));
                    point.chosen_fixed64(6, count);
                    attributes(point, 7, &with);
                });
            }
            sum.uint(2, CUMULATIVE);
            sum.uint(3, 1);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::SpanAttributes;
    use crate::metrics::DropReason;
    use crate::otlp::reader::ProtoMessage;

    #[test]
    fn histograms_are_written_with_the_numbers_of_otlp() {
        let mut metrics = CallMetrics::new(1_000_000);
        let mut with = SpanAttributes::default();
        with.text("mcp.method.name", "tools/call");
        for seconds in [0.005, 0.3, 400.0] {
            metrics.record(DurationMetric::ServerOperation, with.clone(), seconds);
        }
        metrics.count_dropped(DropReason::QueueFull, 3);
        let resource = TelemetryResource::new([]);
        let request = ProtoMessage::parse(&metric_request(&resource, &metrics, 2_000_000));
        let found = request.message(1).message(2).messages(2);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].text(1), found[0].text(3)),
            ("mcp.server.operation.duration".to_owned(), "s".to_owned())
        );
        let histogram = found[0].message(9);
        assert_eq!(histogram.number(2), 2);
        let point = histogram.message(1);
        assert_eq!((point.number(2), point.number(3), point.number(4)), (1_000_000_000, 2_000_000_000, 3));
        assert!((f64::from_bits(point.number(5)) - 400.305).abs() < 1e-9);
        assert_eq!(point.packed64(6), [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(point.packed64(7).len(), 14);
        assert_eq!((f64::from_bits(point.number(11)), f64::from_bits(point.number(12))), (0.005, 400.0));
        assert_eq!(point.message(9).text(1), "mcp.method.name");
        let sum = found[1].message(7);
        assert_eq!((sum.number(2), sum.number(3)), (2, 1));
        let counts: Vec<_> = sum.messages(1).iter().map(|point| point.number(6)).collect();
        assert_eq!(counts, [3, 0, 0]);
    }
}
