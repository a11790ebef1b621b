use parking_lot::Mutex;

use trunkline_client::{CallObserver, LogMessage, ProgressUpdate};
use trunkline_protocol::model::InputRequest;
use trunkline_server::Context;

use crate::upstream::forward_log;

/// Forwards a server's progress and log notifications of a call to the caller.
#[derive(Debug)]
pub(super) struct ProgressForwarder {
    context: Context,
    /// The first input request of the server that needs a capability which the caller had not declared.
    undeclared: Mutex<Option<InputRequest>>,
}

impl ProgressForwarder {
    pub(super) fn new(context: &Context) -> Self {
        Self { context: context.clone(), undeclared: Mutex::default() }
    }

    pub(super) fn take_undeclared(&self) -> Option<InputRequest> {
        self.undeclared.lock().take()
    }
}

impl CallObserver for ProgressForwarder {
    fn progress(&self, report: &ProgressUpdate) {
        self.context.forward_progress(report.progress, report.total, report.message.clone());
    }

    fn log(&self, message: &LogMessage) {
        forward_log(&self.context, message);
    }

    fn undeclared(&self, question: &InputRequest) {
        let mut first = self.undeclared.lock();
        first.get_or_insert_with(|| question.clone());
    }
}
