//! Metrics in the form that Prometheus reads.
//!
//! Every label comes from a closed set: methods, revisions, ways to end, rows of the table of refusals, and the names of
//! tools that the handler really has. No peer can make a series.

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
use trunkline_protocol::{Method, Params, Raw, Revision};

pub(crate) use self::series::Ended;
use self::series::Series;
pub use self::upstream::UpstreamItem;
use crate::call::Handler;
use crate::core::Core;

/// The most tools that have a series of their own; the others share one.
const MOST_TOOLS: usize = 1_000;

/// Counts and times calls, and writes what it knows as text. Clones are the same.
///
/// Give it to a host with [`HostOptions::metrics`](crate::HostOptions::metrics), and serve [`Metrics::text`] where only
/// those can read it who may.
#[derive(Clone, Default)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    methods: [Series; Method::ALL.len()],
    revisions: [AtomicU64; Revision::ALL.len()],
    tools: ArcSwap<BTreeMap<Arc<str>, Arc<Series>>>,
    /// Calls of tools that there are not, or that came after too many others.
    other_tools: Arc<Series>,
    hosts: Mutex<Vec<Weak<Core>>>,
}

/// What there is at one moment.
#[derive(Debug, Default)]
struct Load {
    /// Calls that run.
    running: usize,
    /// Calls that wait for an answer in another request.
    parked: usize,
    /// Bytes that are held for peers that have not read them.
    unread: usize,
}

impl Metrics {
    /// Makes metrics that nothing was counted in yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the content type of [`Metrics::text`].
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Writes everything that was counted, in the text format of Prometheus.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// Has the calls that run on a host counted too.
    pub(crate) fn attach(&self, core: &Arc<Core>) {
        let mut hosts = self.inner.hosts.lock();
        hosts.retain(|host| host.strong_count() > 0);
        hosts.push(Arc::downgrade(core));
    }

    /// Returns what all hosts together have to do now.
    fn load(&self) -> Load {
        let hosts = self.inner.hosts.lock();
        hosts.iter().filter_map(Weak::upgrade).fold(Load::default(), |load, core| Load {
            running: load.running + core.calls(),
            parked: load.parked + core.lot.count(),
            unread: load.unread + core.unread.held(),
        })
    }

    /// Begins to time a call.
    pub(crate) fn begin(
        &self,
        handler: &dyn Handler,
        method: Method,
        params: &Params,
        revision: Revision,
    ) -> Timing {
        let revision = Revision::ALL.iter().position(|known| *known == revision);
        if let Some(counter) = revision.and_then(|at| self.inner.revisions.get(at)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let series = match method {
            Method::ToolsCall => Timed::Tool(self.tool(handler, params)),
            other => Timed::Method(self.inner.clone(), other),
        };
        Timing { series, began: Instant::now(), over: false }
    }

    /// Finds the series of the tool that a call names; the first call of a tool makes it.
    fn tool(&self, handler: &dyn Handler, params: &Params) -> Arc<Series> {
        let Some(name) = params.get("name").and_then(Raw::as_text) else {
            return self.inner.other_tools.clone();
        };
        if let Some(series) = self.inner.tools.load().get(&*name) {
            return series.clone();
        }
        if handler.has_tool(&name) { self.add_tool(&name) } else { self.inner.other_tools.clone() }
    }

    #[cold]
    fn add_tool(&self, name: &str) -> Arc<Series> {
        self.inner.tools.rcu(|tools| {
            let mut tools = BTreeMap::clone(tools);
            if tools.len() < MOST_TOOLS {
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

/// One call that is being timed; dropped before it was told how the call ended, it counts as cancelled.
pub(crate) struct Timing {
    series: Timed,
    began: Instant,
    over: bool,
}

enum Timed {
    Tool(Arc<Series>),
    Method(Arc<Inner>, Method),
}

impl Timing {
    pub(crate) fn end(&mut self, ended: Ended) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let took = self.began.elapsed();
        match &self.series {
            Timed::Tool(series) => series.record(took, ended),
            Timed::Method(inner, method) => {
                if let Some(series) = inner.methods.get(*method as usize) {
                    series.record(took, ended);
                }
            }
        }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        self.end(Ended::Cancelled);
    }
}
