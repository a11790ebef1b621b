use parking_lot::Mutex;

use trunkline_client::{LogMessage, Observer, Progress};
use trunkline_protocol::model::Question;
use trunkline_server::Context;

/// Hears what a server says while it works on a call, and tells the caller of what is meant for it.
#[derive(Debug)]
pub(super) struct Witness {
    context: Context,
    /// The first thing that the server asked although nobody had declared it.
    undeclared: Mutex<Option<Question>>,
}

impl Witness {
    pub(super) fn of(context: &Context) -> Self {
        Self { context: context.clone(), undeclared: Mutex::default() }
    }

    pub(super) fn take_undeclared(&self) -> Option<Question> {
        self.undeclared.lock().take()
    }
}

impl Observer for Witness {
    fn progress(&self, report: &Progress) {
        self.context.carry_progress(report.progress, report.total, report.message.clone());
    }

    fn log(&self, message: &LogMessage) {
        // A client that cannot read one message may end the whole connection.
        if let Some(data) = message.data.readable() {
            self.context.carry_log(message.level, message.logger.clone(), data);
        }
    }

    fn undeclared(&self, question: &Question) {
        let mut first = self.undeclared.lock();
        first.get_or_insert_with(|| question.clone());
    }
}
