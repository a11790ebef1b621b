use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use tokio::sync::Notify;
use trunkline_protocol::codec::{self, Dialect, Reply};
use trunkline_protocol::{Id, Members, Method, Params, Raw, Refusal, Revision, Revisions, Writer, emit};
use trunkline_session::{Principal, Timestamp};

use crate::call::Handler;
use crate::callers::{Busy, Callers};
use crate::env::EnvSources;
use crate::host::HostOptions;
use crate::limits::Limits;
use crate::metrics::{Ended, Metrics, Timing};
use crate::round::{Lot, Sealer, StateKeys};
use crate::shutdown::Shutdown;
use crate::state::States;
use crate::tally::Tally;
use crate::unanswered::{Reserved, Unanswered};
use crate::unread::Unread;
use crate::watched::Watched;

/// What every edge of one server shares.
pub(crate) struct Core {
    pub(crate) handler: Arc<dyn Handler>,
    /// The server's description of itself, rendered once for the modern edge, which repeats it in every result.
    pub(crate) server_info: Raw,
    /// The revisions that are spoken here.
    pub(crate) revisions: Revisions,
    pub(crate) limits: Limits,
    pub(crate) lot: Lot,
    pub(crate) sealer: Sealer,
    pub(crate) shutdown: Shutdown,
    pub(crate) listens: Tally,
    pub(crate) unread: Arc<Unread>,
    unanswered: Arc<Unanswered>,
    pub(crate) watched: Arc<Watched>,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) states: Arc<States>,
    pub(crate) env: EnvSources,
    /// Whether roots are taken from `clientInfo` too.
    pub(crate) client_info_roots: bool,
    /// Whether a legacy client has to say that it is initialized before it asks for anything.
    pub(crate) strict: bool,
    /// Whether the answer to `initialize` tells the session's id.
    pub(crate) session_in_meta: bool,
    /// Whether sessions ask for roots only when somebody wants to know them.
    pub(crate) roots_on_demand: bool,
    calls: AtomicUsize,
    callers: Callers,
    idle: Notify,
}

impl Core {
    pub(crate) fn new(handler: Arc<dyn Handler>, keys: &StateKeys, options: HostOptions) -> Arc<Self> {
        let HostOptions {
            revisions,
            limits,
            shutdown,
            metrics,
            state_limits,
            state_store,
            env,
            client_info_roots,
            strict,
            session_in_meta,
            roots_on_demand,
            ..
        } = options;
        let mut writer = Writer::with_capacity(96);
        handler.identity().write(Dialect::of(Revision::NEWEST), &mut writer);
        let core = Arc::new(Self {
            handler,
            revisions,
            server_info: writer.into_raw(),
            listens: Tally::new(limits.listens, limits.listens_per_principal),
            unread: Unread::new(limits.unread_bytes),
            unanswered: Unanswered::new(limits.unanswered_bytes),
            watched: Watched::new(limits.watched_bytes),
            callers: Callers::new(limits.calls_per_principal),
            lot: Lot::new(&limits, shutdown.clone()),
            limits,
            sealer: Sealer::new(keys),
            shutdown,
            metrics,
            states: Arc::new(States::new(&state_limits, state_store)),
            env: EnvSources::new(&env),
            client_info_roots,
            strict,
            session_in_meta,
            roots_on_demand,
            calls: AtomicUsize::new(0),
            idle: Notify::new(),
        });
        if let Some(metrics) = &core.metrics {
            metrics.attach(&core);
        }
        core
    }

    /// Renders a response.
    pub(crate) fn result(&self, id: &Id, reply: &Reply, revision: Revision) -> String {
        let dialect = Dialect::of(revision);
        emit::result(id, reply.length_hint(), |writer| {
            codec::write_reply(reply, dialect, &self.server_info, writer);
        })
    }

    /// Counts a call as running until the guard is dropped.
    ///
    /// # Errors
    /// [`Refusal::TOO_MANY`] or [`Refusal::SHUTTING_DOWN`].
    pub(crate) fn admit_call(self: &Arc<Self>, principal: &Principal) -> Result<InFlight, Refusal> {
        if self.shutdown.is_draining() {
            return Err(Refusal::SHUTTING_DOWN);
        }
        let mut guard = InFlight { core: self.clone(), timing: None, caller: None };
        if self.calls.fetch_add(1, Ordering::SeqCst) >= self.limits.calls {
            return Err(Refusal::TOO_MANY);
        }
        match self.callers.enter(principal) {
            Ok(caller) => guard.caller = caller,
            Err(Busy) => {
                let most = self.limits.calls_per_principal;
                let message =
                    format!("at most {most} calls of one caller may run at a time; try again later");
                return Err(Refusal::TOO_MANY.because(message));
            }
        }
        Ok(guard)
    }

    /// Sees to it that a request of which so many bytes are there has room for them.
    ///
    /// # Errors
    /// [`Refusal::TOO_MANY`]; a large call that only waits ends then, so that whoever comes back finds room.
    pub(crate) fn cover(&self, reserved: &mut Option<Reserved>, bytes: usize) -> Result<(), Refusal> {
        self.unanswered.cover(reserved, bytes).inspect_err(|_| self.lot.end_oldest_large())
    }

    /// Returns how many calls run.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Waits until no call runs, in a server that drains.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.idle.notified();
            if self.calls() == 0 {
                return;
            }
            notified.await;
        }
    }

    /// Returns the members that describe the server to a new peer.
    pub(crate) fn describe(&self, revision: Revision) -> Members {
        let mut members = Members::new();
        let mut writer = Writer::with_capacity(128);
        self.handler.capabilities().write(Dialect::of(revision), &mut writer);
        members.set("capabilities", writer.into_raw());
        if let Some(instructions) = self.handler.instructions() {
            members.set("instructions", Raw::from_text(&instructions));
        }
        members
    }
}

/// A call that is counted as running.
pub(crate) struct InFlight {
    core: Arc<Core>,
    timing: Option<Timing>,
    /// The principal for whom it counts.
    caller: Option<Principal>,
}

impl InFlight {
    /// Returns what counts the call.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Begins to time the call, if there are metrics.
    pub(crate) fn time(&mut self, method: Method, params: &Params, revision: Revision) {
        if let Some(metrics) = &self.core.metrics {
            self.timing = Some(metrics.begin(&*self.core.handler, method, params, revision));
        }
    }

    /// Notes how the call ended; one of which nothing is noted was cancelled.
    pub(crate) fn end(&mut self, ended: Ended) {
        if let Some(timing) = &mut self.timing {
            timing.end(ended);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(caller) = &self.caller {
            self.core.callers.leave(caller);
        }
        // Whoever waits for the last call began to after the server did to drain, and looks at the count once more itself. So
        // the many calls that are the only one need not take the lock of those who wait.
        if self.core.calls.fetch_sub(1, Ordering::SeqCst) == 1 && self.core.shutdown.is_draining() {
            self.core.idle.notify_waiters();
        }
    }
}

/// Reads the clock. The rooms below take the time as an argument.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_system(SystemTime::now())
}
