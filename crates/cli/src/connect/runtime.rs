use tokio::runtime::Builder;

use crate::exit::{CliFailure, ExitReason};
use crate::signals::Signals;

/// Runs `work` with signal handling, and abandons blocking reads of the terminal at its end.
///
/// # Errors
/// The error of `work`, or of starting the runtime.
pub(crate) fn in_runtime<W>(json: bool, work: W) -> Result<(), CliFailure>
where
    W: AsyncFnOnce(&mut Signals) -> Result<(), CliFailure>,
{
    let begun = Builder::new_current_thread().enable_all().build();
    let runtime = begun
        .map_err(|error| CliFailure::new(ExitReason::Failed, format!("cannot start the runtime: {error}")))?;
    let done = runtime.block_on(async {
        let signals = Signals::install();
        let mut signals = signals.map_err(|error| {
            CliFailure::new(ExitReason::Failed, format!("cannot listen for signals: {error}"))
        })?;
        work(&mut signals).await
    });
    // A thread may sit in a read of the terminal that nothing can interrupt; leaving must not wait for it.
    runtime.shutdown_background();
    done.map_err(|failure| failure.with_json(json))
}

/// Returns the failure for an interrupted command.
pub(crate) fn interrupted() -> CliFailure {
    CliFailure::new(ExitReason::Interrupted, "interrupted")
}
