use std::fmt;
use std::sync::Arc;

use trunkline_protocol::model::InputRequest;

use super::{LogMessage, ProgressUpdate};

/// Receives what a server sends while it works on a call.
pub trait CallObserver: Send + Sync {
    /// Called for each progress notification.
    fn progress(&self, _: &ProgressUpdate) {}

    /// Called for each log message that can be attributed to the call.
    fn log(&self, _: &LogMessage) {}

    /// Called when the server requests input that the client did not declare.
    fn undeclared(&self, _: &InputRequest) {}
}

/// All observers of a call.
#[derive(Clone, Default)]
pub(crate) struct CallObservers {
    functions: Option<Box<ObserverFunctions>>,
    other: Option<Arc<dyn CallObserver>>,
}

/// Callbacks for one kind of event each.
#[derive(Clone, Default)]
struct ObserverFunctions {
    progress: Option<Arc<ProgressFn>>,
    log: Option<Arc<LogFn>>,
}

type ProgressFn = dyn Fn(&ProgressUpdate) + Send + Sync;
type LogFn = dyn Fn(&LogMessage) + Send + Sync;
type SessionLogFn = dyn Fn(&LogMessage, bool) + Send + Sync;

/// The callbacks for the log messages of a connection.
#[derive(Clone, Default)]
pub(crate) struct LogSinks {
    /// Called for every message.
    pub(crate) all: Option<Arc<LogFn>>,
    /// Called for messages that cannot be attributed to one call.
    pub(crate) session: Option<Arc<SessionLogFn>>,
}

impl CallObservers {
    pub(crate) fn on_progress(&mut self, callback: impl Fn(&ProgressUpdate) + Send + Sync + 'static) {
        self.functions.get_or_insert_default().progress = Some(Arc::new(callback));
    }

    pub(crate) fn on_log(&mut self, callback: impl Fn(&LogMessage) + Send + Sync + 'static) {
        self.functions.get_or_insert_default().log = Some(Arc::new(callback));
    }

    pub(crate) fn set(&mut self, observer: Arc<dyn CallObserver>) {
        self.other = Some(observer);
    }

    /// Reports whether there is an observer of progress.
    pub(crate) fn wants_progress(&self) -> bool {
        self.other.is_some() || self.functions.as_ref().is_some_and(|functions| functions.progress.is_some())
    }

    /// Notifies all observers.
    pub(crate) fn notify(&self, callback: impl Fn(&dyn CallObserver)) {
        if let Some(functions) = &self.functions {
            callback(&**functions);
        }
        if let Some(other) = &self.other {
            callback(&**other);
        }
    }
}

impl CallObserver for ObserverFunctions {
    fn progress(&self, progress: &ProgressUpdate) {
        if let Some(callback) = &self.progress {
            callback(progress);
        }
    }

    fn log(&self, message: &LogMessage) {
        if let Some(callback) = &self.log {
            callback(message);
        }
    }
}

impl fmt::Debug for CallObservers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallObservers")
            .field("functions", &self.functions.is_some())
            .field("other", &self.other.is_some())
            .finish()
    }
}
