use std::io::IsTerminal as _;
use std::time::Duration;

use trunkline_server::{Binding as _, Host, ServeError, Shutdown};

use super::ServeArgs;
use crate::builtin;
use crate::exit::{Exit, Failure, say};
use crate::signals::Departure;

/// Serves standard input and output until the input ends or a signal comes.
///
/// # Errors
/// The transport fails, or calls had to be ended.
pub(super) async fn serve(args: &ServeArgs, host: &Host, departure: &Departure) -> Result<(), Failure> {
    let signals = super::install_signals()?;
    if std::io::stderr().is_terminal() {
        let names = builtin::names(&args.builtin);
        say(&format!("trunkline serves {names}: type JSON-RPC messages, one a line; Ctrl-D ends\n"));
    }
    let aborted = tokio::select! {
        biased;
        // Calls are counted before the server that runs them is dropped.
        () = departure.shutdown().stopping() => host.load().0,
        () = overdue(departure.shutdown(), args.grace) => host.load().0,
        never = departure.follow(signals, Duration::ZERO) => match never {},
        served = trunkline_server::stdio().serve(host.clone()) => {
            served.map_err(failed)?;
            0
        }
    };
    super::outcome(departure.cut_short(), aborted, args.grace)
}

/// Waits until the time that calls have to finish is over.
async fn overdue(shutdown: &Shutdown, grace: Duration) {
    shutdown.draining().await;
    tokio::time::sleep(grace).await;
}

fn failed(error: ServeError) -> Failure {
    Failure::new(Exit::Failed, error)
}
