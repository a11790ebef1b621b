use std::fmt;
use std::sync::Arc;

use trunkline_protocol::model::InputRequest;

use super::{LogMessage, ProgressUpdate};

/// Who is told what a server says while it works on a call.
pub trait CallObserver: Send + Sync {
    /// The server says how far it is.
    fn progress(&self, _: &ProgressUpdate) {}

    /// The server writes a log message that can be told apart from those of other calls.
    fn log(&self, _: &LogMessage) {}

    /// The server asked something although nobody had declared that it can be answered.
    fn undeclared(&self, _: &InputRequest) {}
}

/// All who are told of a call.
#[derive(Default)]
pub(crate) struct CallObservers {
    functions: Option<Box<ObserverFunctions>>,
    other: Option<Arc<dyn CallObserver>>,
}

/// Functions that are told of one thing each.
#[derive(Default)]
struct ObserverFunctions {
    progress: Option<Box<ProgressFn>>,
    log: Option<Box<LogFn>>,
}

type ProgressFn = dyn Fn(&ProgressUpdate) + Send + Sync;
type LogFn = dyn Fn(&LogMessage) + Send + Sync;
type SessionLogFn = dyn Fn(&LogMessage, bool) + Send + Sync;

/// The functions that are told of the log messages of a whole connection.
#[derive(Clone, Default)]
pub(crate) struct LogSinks {
    /// Of every one.
    pub(crate) all: Option<Arc<LogFn>>,
    /// Of those that cannot be told to belong to one call.
    pub(crate) session: Option<Arc<SessionLogFn>>,
}

impl CallObservers {
    pub(crate) fn on_progress(&mut self, tell: impl Fn(&ProgressUpdate) + Send + Sync + 'static) {
        self.functions.get_or_insert_default().progress = Some(Box::new(tell));
    }

    pub(crate) fn on_log(&mut self, tell: impl Fn(&LogMessage) + Send + Sync + 'static) {
        self.functions.get_or_insert_default().log = Some(Box::new(tell));
    }

    pub(crate) fn set(&mut self, observer: Arc<dyn CallObserver>) {
        self.other = Some(observer);
    }

    /// Reports whether anybody wants to know how far the server is.
    pub(crate) fn wants_progress(&self) -> bool {
        self.other.is_some() || self.functions.as_ref().is_some_and(|functions| functions.progress.is_some())
    }

    /// Tells everybody.
    pub(crate) fn notify(&self, tell: impl Fn(&dyn CallObserver)) {
        if let Some(functions) = &self.functions {
            tell(&**functions);
        }
        if let Some(other) = &self.other {
            tell(&**other);
        }
    }
}

impl CallObserver for ObserverFunctions {
    fn progress(&self, progress: &ProgressUpdate) {
        if let Some(tell) = &self.progress {
            tell(progress);
        }
    }

    fn log(&self, message: &LogMessage) {
        if let Some(tell) = &self.log {
            tell(message);
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
