use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use trunkline_hub::events::{EventSubscription, EventViewer, HubEvents};
use trunkline_transport::dial::{DialOptions, Dialer};

use crate::call_spans::CallSpans;
use crate::exporter::OtlpExporter;
use crate::metrics::DropReason;
use crate::otlp::{metric_request, trace_request};
use crate::settings::{TelemetryError, TelemetryResource, TelemetrySettings};
use crate::signal_queue::SignalQueue;

/// The export of a hub's traces and metrics, until its shutdown.
#[derive(Debug)]
pub struct Telemetry {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Telemetry {
    /// Begins to follow a hub and to export. It has to be called within a runtime, before the hub serves.
    ///
    /// # Errors
    /// An address cannot be used.
    pub fn start(events: &HubEvents, settings: &TelemetrySettings) -> Result<Self, TelemetryError> {
        let mut options = DialOptions::default();
        options.extra_roots.clone_from(&settings.certificate);
        let dialer = Dialer::new(options);
        let queue = Arc::new(SignalQueue::new(settings.queue_spans, settings.batch_spans, now()));
        let (stop, stopping) = watch::channel(false);
        let exporter = |endpoint: &Option<_>, what| {
            let make = |endpoint| OtlpExporter::new(endpoint, dialer.clone(), settings.timeout, what);
            endpoint.as_ref().map(make).transpose()
        };
        let (traces, metrics) =
            (exporter(&settings.traces, "traces")?, exporter(&settings.metrics, "metrics")?);
        let subscription = events.subscribe_without_messages(EventViewer::Operator, None);
        events.trace_calls(settings.sampler);
        let follower = EventFollower {
            subscription,
            spans: CallSpans::default(),
            queue: queue.clone(),
            has_traces: traces.is_some(),
        };
        let mut tasks = Vec::new();
        // What is exported last has to be followed first.
        let (followed, all_followed) = watch::channel(false);
        tasks.push(tokio::spawn(follower.run(stopping, followed)));
        let resource = Arc::new(settings.resource.clone());
        if let Some(exporter) = traces {
            let task = SignalExport { exporter, queue: queue.clone(), resource: resource.clone() };
            tasks.push(tokio::spawn(task.export_spans(settings.span_delay, all_followed.clone())));
        }
        if let Some(exporter) = metrics {
            let task = SignalExport { exporter, queue, resource };
            tasks.push(tokio::spawn(task.export_metrics(settings.metric_interval, all_followed)));
        }
        Ok(Self { stop, tasks })
    }

    /// Exports what is left, within a time, and ends.
    pub async fn shutdown(self, within: Duration) {
        let Self { stop, mut tasks } = self;
        // The tasks may have ended with the runtime.
        let _ = stop.send(true);
        let all = async {
            for task in &mut tasks {
                let _ = task.await;
            }
        };
        if tokio::time::timeout(within, all).await.is_err() {
            tracing::warn!("the last traces and metrics were not exported within {within:?}");
            tasks.iter().for_each(JoinHandle::abort);
        }
    }
}

/// Returns the time in microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Follows the events of a hub and queues what they amount to.
struct EventFollower {
    subscription: EventSubscription,
    spans: CallSpans,
    queue: Arc<SignalQueue>,
    has_traces: bool,
}

impl EventFollower {
    async fn run(mut self, mut stopping: watch::Receiver<bool>, followed: watch::Sender<bool>) {
        loop {
            let event = tokio::select! {
                event = self.subscription.next_event() => event,
                _ = stopping.wait_for(|stopping| *stopping) => break,
            };
            self.apply(&event);
        }
        while let Some(event) = self.subscription.try_next() {
            self.apply(&event);
        }
        let _ = followed.send(true);
    }

    fn apply(&mut self, event: &trunkline_hub::events::HubEvent) {
        let mut ended = Vec::new();
        self.queue.with_metrics(|metrics| self.spans.apply(event, metrics, &mut |span| ended.push(span)));
        if self.has_traces {
            ended.into_iter().for_each(|span| self.queue.push(span));
        }
    }
}

/// The export of one kind of signal.
struct SignalExport {
    exporter: OtlpExporter,
    queue: Arc<SignalQueue>,
    resource: Arc<TelemetryResource>,
}

impl SignalExport {
    async fn export_spans(mut self, delay: Duration, mut stopping: watch::Receiver<bool>) {
        let mut ticks = interval_at(Instant::now() + delay, delay);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_last = tokio::select! {
                _ = ticks.tick() => false,
                () = self.queue.is_batch_ready.notified() => false,
                _ = stopping.wait_for(|stopping| *stopping) => true,
            };
            loop {
                let spans = self.queue.take_batch();
                if spans.is_empty() {
                    break;
                }
                if !self.exporter.export(trace_request(&self.resource, &spans), &mut stopping).await {
                    let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
                    self.queue.with_metrics(|metrics| metrics.count_dropped(DropReason::ExportFailed, count));
                }
            }
            if is_last {
                return;
            }
        }
    }

    async fn export_metrics(mut self, delay: Duration, mut stopping: watch::Receiver<bool>) {
        let mut ticks = interval_at(Instant::now() + delay, delay);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_last = tokio::select! {
                _ = ticks.tick() => false,
                _ = stopping.wait_for(|stopping| *stopping) => true,
            };
            let metrics = self.queue.with_metrics(|metrics| metrics.clone());
            // What was counted is in the next request too.
            self.exporter.export(metric_request(&self.resource, &metrics, now()), &mut stopping).await;
            if is_last {
                return;
            }
        }
    }
}
