use std::io::IsTerminal as _;
use std::time::Duration;

use trunkline_server::{ServeError, ServerTransport as _};

use super::PreparedService;
use super::gateway::SessionSource;
use super::user_logins::serve_pages_on_demand;
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::signals::Signals;

/// How long calls may go on once the client has closed the input, and so reads no answers for long.
const END_OF_INPUT_GRACE: Duration = Duration::from_secs(5);

/// Serves standard input and output until the input ends or a signal comes.
///
/// # Errors
/// The transport fails, or calls had to be ended.
pub(super) async fn serve(serving: &PreparedService<'_>, signals: Signals) -> Result<(), CliFailure> {
    let PreparedService { edge, description, host, shutdown, .. } = serving;
    if let Some(logins) = &serving.logins {
        serve_pages_on_demand(logins, host);
    }
    if let Some(gateway) = serving.gateway() {
        gateway.set_sessions(SessionSource::Stdio(host.clone()));
    }
    let keeping = serving.start_backend().await;
    if std::io::stderr().is_terminal() {
        print_stderr(&format!(
            "serving {description} on stdio: type one JSON-RPC message per line; Ctrl-D to stop\n"
        ));
    }
    let served = tokio::select! {
        never = shutdown.handle_signals(signals, Duration::ZERO, || serving.begin_shutdown()) => match never {},
        never = keeping => match never {},
        served = trunkline_server::stdio().grace(edge.grace.min(END_OF_INPUT_GRACE)).serve(host.clone()) => served,
    };
    let aborted = match served {
        Ok(()) => 0,
        Err(ServeError::Aborted(calls)) => calls,
        Err(error) => return Err(CliFailure::new(ExitReason::Failed, error)),
    };
    let grace = edge.grace.min(END_OF_INPUT_GRACE);
    let ended = super::exit_result(shutdown.forced_by(), aborted, grace);
    // More `--grace` would change nothing.
    let is_final = shutdown.forced_by().is_none() && grace < edge.grace;
    ended.map_err(|failure| match is_final {
        true => failure.hint(format!("after the end of its input, calls have {grace:?} to finish")),
        false => failure,
    })
}
