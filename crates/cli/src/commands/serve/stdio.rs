use std::io::IsTerminal as _;
use std::time::Duration;

use trunkline_server::{Binding as _, ServeError};

use super::Serving;
use crate::exit::{Exit, Failure, say};
use crate::signals::Signals;

/// Serves standard input and output until the input ends or a signal comes.
///
/// # Errors
/// The transport fails, or calls had to be ended.
pub(super) async fn serve(serving: &Serving<'_>, signals: Signals) -> Result<(), Failure> {
    let Serving { edge, offer, host, departure, .. } = serving;
    let keeping = serving.begin().await;
    if std::io::stderr().is_terminal() {
        say(&format!("trunkline serves {offer}: type JSON-RPC messages, one a line; Ctrl-D ends\n"));
    }
    let served = tokio::select! {
        never = departure.follow(signals, Duration::ZERO) => match never {},
        never = keeping => match never {},
        served = trunkline_server::stdio().grace(edge.grace).serve(host.clone()) => served,
    };
    let aborted = match served {
        Ok(()) => 0,
        Err(ServeError::Aborted(calls)) => calls,
        Err(error) => return Err(Failure::new(Exit::Failed, error)),
    };
    super::outcome(departure.cut_short(), aborted, edge.grace)
}
