use std::sync::Arc;

use tokio::time::Instant;
use trunkline_protocol::Refusal;
use trunkline_protocol::codec::ServerResult;
use trunkline_server::HandlerOutcome;

use super::call_figures::{CallFigures, FigureOutcome};

/// A relayed call that is being timed. Dropped without an outcome, it was cancelled.
#[derive(Debug)]
pub(crate) struct RelayTimer {
    /// `None` once it is counted.
    figures: Option<Arc<CallFigures>>,
    began: Instant,
}

impl RelayTimer {
    pub(crate) fn start(figures: &Arc<CallFigures>) -> Self {
        Self { figures: Some(figures.clone()), began: Instant::now() }
    }

    /// Counts the call by its answer.
    pub(crate) fn finish(mut self, answer: &Result<HandlerOutcome, Refusal>) {
        let (outcome, bytes) = match answer {
            Ok(HandlerOutcome::Done(result)) => {
                let outcome = if result.is_tool_error() { FigureOutcome::Error } else { FigureOutcome::Ok };
                (outcome, relayed_bytes(result))
            }
            Ok(_) => (FigureOutcome::Ok, 0),
            Err(_) => (FigureOutcome::Error, 0),
        };
        self.count(outcome, bytes);
    }

    fn count(&mut self, outcome: FigureOutcome, result_bytes: usize) {
        if let Some(figures) = self.figures.take() {
            let now = Instant::now();
            figures.count(now, now.saturating_duration_since(self.began), outcome, result_bytes);
        }
    }
}

impl Drop for RelayTimer {
    fn drop(&mut self) {
        self.count(FigureOutcome::Cancelled, 0);
    }
}

/// Returns the bytes of a result of a server.
fn relayed_bytes(result: &ServerResult) -> usize {
    match result {
        ServerResult::Relayed(result) => result.raw().as_str().len(),
        _ => 0,
    }
}
