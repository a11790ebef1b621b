//! Metrics in the text format of Prometheus.
//!
//! Every label comes from a closed set: methods, revisions, outcomes, rows of the table of refusals, and the names of
//! tools that the handler really has. No peer can create a series.
//!
//! # Invariants
//!
//! - Callers cannot create time series: `unknown_tool_names_create_no_metric_series`.

pub(crate) mod process;
mod series;
mod text;
mod upstream;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use trunkline_protocol::{Method, Params, RawJson, Revision};
use trunkline_session::SessionStore;

use self::series::CallSeries;
pub(crate) use self::series::MetricOutcome;
pub use self::upstream::UpstreamItem;
use crate::call::Handler;
use crate::server_core::ServerCore;

/// The most tools that have a series of their own; the others share one.
const MAX_TOOLS: usize = 1_000;

/// Counts and times calls, and writes the metrics as text. Clones share them.
///
/// Pass it to a host with [`HostOptions::metrics`](crate::HostOptions::metrics), and serve [`Metrics::text`] where
/// only authorized clients can read it.
#[derive(Clone, Default)]
pub struct Metrics {
    inner: Arc<MetricsInner>,
}

#[derive(Default)]
struct MetricsInner {
    methods: [CallSeries; Method::ALL.len()],
    revisions: [AtomicU64; Revision::ALL.len()],
    tools: ArcSwap<BTreeMap<Arc<str>, Arc<CallSeries>>>,
    /// Calls of unknown tools, or of tools beyond the limit of series.
    other_tools: Arc<CallSeries>,
    hosts: Mutex<Vec<Weak<ServerCore>>>,
    stores: Mutex<Vec<Weak<dyn SessionStore>>>,
}

/// The gauges at one moment.
#[derive(Debug, Default)]
struct CurrentLoad {
    /// Running calls.
    running: usize,
    /// Suspended calls, which wait for input in another request.
    suspended: usize,
    /// Bytes that are held for peers that have not read them.
    unread: usize,
}

impl Metrics {
    /// Makes empty metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the content type of [`Metrics::text`].
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Writes all metrics, in the text format of Prometheus.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// Adds the running calls of a host to the gauges.
    pub(crate) fn attach(&self, core: &Arc<ServerCore>) {
        let mut hosts = self.inner.hosts.lock();
        hosts.retain(|host| host.strong_count() > 0);
        hosts.push(Arc::downgrade(core));
    }

    /// Adds the sessions of a store to the gauges.
    pub(crate) fn attach_store(&self, store: &Arc<dyn SessionStore>) {
        let mut stores = self.inner.stores.lock();
        stores.retain(|store| store.strong_count() > 0);
        stores.push(Arc::downgrade(store));
    }

    /// Returns the number of sessions in the stores of each kind.
    fn stored_sessions(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for store in self.inner.stores.lock().iter().filter_map(Weak::upgrade) {
            *counts.entry(store.kind()).or_default() += store.count();
        }
        counts
    }

    /// Returns the gauges of all hosts together.
    fn load(&self) -> CurrentLoad {
        let hosts = self.inner.hosts.lock();
        hosts.iter().filter_map(Weak::upgrade).fold(CurrentLoad::default(), |load, core| CurrentLoad {
            running: load.running + core.calls(),
            suspended: load.suspended + core.suspended_calls.count(),
            unread: load.unread + core.write_budget.used(),
        })
    }

    /// Begins to time a call.
    pub(crate) fn start_call(
        &self,
        handler: &dyn Handler,
        method: Method,
        params: &Params,
        revision: Revision,
    ) -> CallTimer {
        let revision = Revision::ALL.iter().position(|known| *known == revision);
        if let Some(counter) = revision.and_then(|at| self.inner.revisions.get(at)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let series = match method {
            Method::ToolsCall => TimedSeries::Tool(self.tool(handler, params)),
            other => TimedSeries::Method(self.inner.clone(), other),
        };
        CallTimer { series, began: Instant::now(), ended: false }
    }

    /// Finds the series of the tool that a call names; the first call of a tool creates it.
    fn tool(&self, handler: &dyn Handler, params: &Params) -> Arc<CallSeries> {
        let Some(name) = params.get("name").and_then(RawJson::as_text) else {
            return self.inner.other_tools.clone();
        };
        if let Some(series) = self.inner.tools.load().get(&*name) {
            return series.clone();
        }
        if handler.has_tool(&name) { self.add_tool(&name) } else { self.inner.other_tools.clone() }
    }

    #[cold]
    fn add_tool(&self, name: &str) -> Arc<CallSeries> {
        self.inner.tools.rcu(|tools| {
            let mut tools = BTreeMap::clone(tools);
            if tools.len() < MAX_TOOLS {
                tools.entry(name.into()).or_default();
            }
            tools
        });
        self.inner.tools.load().get(name).unwrap_or(&self.inner.other_tools).clone()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("load", &self.load()).finish_non_exhaustive()
    }
}

/// One call that is being timed; dropped before its outcome is recorded, it counts as cancelled.
pub(crate) struct CallTimer {
    series: TimedSeries,
    began: Instant,
    ended: bool,
}

enum TimedSeries {
    Tool(Arc<CallSeries>),
    Method(Arc<MetricsInner>, Method),
}

impl CallTimer {
    pub(crate) fn end(&mut self, ended: MetricOutcome) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let took = self.began.elapsed();
        match &self.series {
            TimedSeries::Tool(series) => series.record(took, ended),
            TimedSeries::Method(inner, method) => {
                if let Some(series) = inner.methods.get(*method as usize) {
                    series.record(took, ended);
                }
            }
        }
    }
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        self.end(MetricOutcome::Cancelled);
    }
}
