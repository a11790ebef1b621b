//! `trunkline serve`: the servers and commands of a file, or built-in servers, over HTTP or standard input and output.

mod banner;
mod gateway;
pub(crate) mod health;
mod http;
mod offer;
mod options;
mod plan;
mod stdio;

use std::time::Duration;

use tokio::runtime::Builder;
use trunkline_server::{Host, HostOptions, Layers, Metrics, Trace};

use self::offer::Offer;
pub(crate) use self::options::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::logging::Level;
use crate::signals::{Departure, Signal, Signals};

/// Serves until the peer is gone or a signal comes.
///
/// # Errors
/// What the person at the terminal is told, and the exit code.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    args.log.begin(if args.stdio { Level::Warn } else { Level::Info })?;
    let departure = Departure::default();
    let metrics = Metrics::new();
    // One client on two pipes keeps one thread busy at most, and the fewer there are the sooner the first answer is.
    let mut builder = if args.stdio { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failed, format!("the runtime cannot start: {error}")))?;
    let served = runtime.block_on(async {
        let offer = Offer::of(args)?;
        let host = host(args, &offer, &departure, &metrics)?;
        let served = if args.stdio {
            stdio::serve(args, &offer, &host, &departure).await
        } else {
            http::serve(args, &offer, &host, &metrics, &departure).await
        };
        offer.end().await;
        served
    });
    // A thread may sit in a read of the terminal that nothing can interrupt; leaving must not wait for it.
    runtime.shutdown_background();
    served
}

fn host(args: &ServeArgs, offer: &Offer, departure: &Departure, metrics: &Metrics) -> Result<Host, Failure> {
    let state_keys = args.state_keys()?;
    let options = HostOptions {
        limits: args.limits(),
        state_keys,
        layers: Layers::new().with(Trace::new()),
        // Over standard input and output there is nowhere to read them.
        metrics: (!args.stdio).then(|| metrics.clone()),
        shutdown: departure.shutdown().clone(),
        env: args.env(),
        client_info_roots: args.compat_clientinfo_roots,
        ..HostOptions::default()
    };
    offer.host(options)
}

fn install_signals() -> Result<Signals, Failure> {
    Signals::install()
        .map_err(|error| Failure::new(Exit::Failed, format!("signals cannot be listened to: {error}")))
}

/// Says how a server ended, by the second signal if there was one and the calls that it left unanswered.
fn outcome(cut_short: Option<Signal>, aborted: usize, grace: Duration) -> Result<(), Failure> {
    let lost = match aborted {
        0 => None,
        1 => Some("1 call was ended before it was answered".to_owned()),
        several => Some(format!("{several} calls were ended before they were answered")),
    };
    match (cut_short, lost) {
        (Some(Signal::Interrupt), lost) => {
            let and = lost.map(|lost| format!("; {lost}")).unwrap_or_default();
            Err(Failure::new(Exit::Interrupted, format!("a second interrupt ended the program at once{and}")))
        }
        (None | Some(Signal::Terminate), None) => Ok(()),
        (Some(Signal::Terminate), Some(lost)) => Err(Failure::new(Exit::Failed, lost)),
        (None, Some(lost)) => {
            Err(Failure::new(Exit::Failed, lost).hint(format!("`--grace` gives them longer than {grace:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_tells_whether_calls_were_lost_and_whether_somebody_was_in_a_hurry() {
        for (cut_short, aborted, expected) in [
            (None, 0, Exit::Ok),
            (None, 1, Exit::Failed),
            (Some(Signal::Terminate), 0, Exit::Ok),
            (Some(Signal::Terminate), 2, Exit::Failed),
            (Some(Signal::Interrupt), 0, Exit::Interrupted),
            (Some(Signal::Interrupt), 2, Exit::Interrupted),
        ] {
            let outcome = outcome(cut_short, aborted, Duration::from_secs(30));
            let exit = outcome.map_or_else(|failure| failure.exit(), |()| Exit::Ok);
            assert_eq!(exit, expected, "{cut_short:?} {aborted}");
        }
    }
}
