//! `trunkline serve`: the servers and commands of a file, or built-in servers, over HTTP or standard input and output.

mod banner;
mod descriptors;
mod gateway;
pub(crate) mod health;
mod http;
mod offer;
mod options;
mod plan;
mod stdio;

use std::convert::Infallible;
use std::time::Duration;

use tokio::runtime::Builder;
use trunkline_hub::AnonymousClients;
use trunkline_server::{Host, HostOptions, Metrics};

use self::gateway::Gateway;
use self::offer::Offer;
pub(crate) use self::options::{EdgeArgs, HTTP, ServeArgs, is_for_http};
use crate::exit::{Exit, Failure};
use crate::logging::Level;
use crate::signals::{Departure, Signal, Signals};
use crate::values::ListenAddress;

/// Serves until the peer is gone or a signal comes.
///
/// # Errors
/// What the person at the terminal is told, and the exit code.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let place = args.place();
    place.begin_log(&args.edge)?;
    let departure = Departure::default();
    in_runtime(place, async |signals| {
        let offer = Offer::of(args)?;
        let mut options = args.edge.host_options(&departure)?;
        let metrics = place.count(&mut options);
        options.env = args.env()?;
        let audit = offer.audit(args)?;
        if let Some(audit) = &audit {
            options.layers = options.layers.with(audit.clone());
        }
        let host = offer.host(options)?;
        let serving = Serving {
            follows: Some(&offer),
            ..Serving::new(&args.edge, offer.names(), host, metrics, departure)
        };
        let served = serving.serve(place, signals).await;
        offer.end(serving.departure.cut_short().is_some()).await;
        if let Some(audit) = audit {
            audit.close();
        }
        served
    })
}

/// Where callers come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Stdio,
    Http(&'a ListenAddress),
}

impl Place<'_> {
    /// Begins to log, over standard input and output only what is worth a warning.
    ///
    /// # Errors
    /// The file for it cannot be opened.
    pub(crate) fn begin_log(self, edge: &EdgeArgs) -> Result<(), Failure> {
        edge.log.begin(match self {
            Place::Stdio => Level::Warn,
            Place::Http(_) => Level::Info,
        })
    }

    /// Tells who clients without credentials are to each other.
    pub(crate) fn anonymous_clients(self, edge: &EdgeArgs) -> AnonymousClients {
        match self {
            Place::Stdio => AnonymousClients::OnePerson,
            Place::Http(address) => http::anonymous_clients(&edge.http, address),
        }
    }

    /// Has calls counted, unless there is nowhere to read the figures.
    pub(crate) fn count(self, options: &mut HostOptions) -> Metrics {
        let metrics = Metrics::new();
        options.metrics = matches!(self, Place::Http(_)).then(|| metrics.clone());
        metrics
    }
}

/// Something that is ready to be served.
#[derive(Debug)]
pub(crate) struct Serving<'a> {
    edge: &'a EdgeArgs,
    /// What it is, for a person to read.
    offer: String,
    host: Host,
    metrics: Metrics,
    pub(crate) departure: Departure,
    /// What has to be begun once it is served, and followed from then on.
    follows: Option<&'a Offer>,
}

impl<'a> Serving<'a> {
    /// Makes ready what needs nothing done beside it.
    pub(crate) fn new(
        edge: &'a EdgeArgs,
        offer: String,
        host: Host,
        metrics: Metrics,
        departure: Departure,
    ) -> Self {
        Self { edge, offer, host, metrics, departure, follows: None }
    }

    /// Serves until the peer is gone or a signal comes.
    ///
    /// # Errors
    /// What was configured cannot be used, the transport fails, or calls had to be ended.
    pub(crate) async fn serve(&self, place: Place<'_>, signals: Signals) -> Result<(), Failure> {
        match place {
            Place::Stdio => stdio::serve(self, signals).await,
            Place::Http(address) => http::serve(self, address, signals).await,
        }
    }

    fn gateway(&self) -> Option<&Gateway> {
        self.follows.and_then(Offer::gateway)
    }

    /// Begins what has to be done beside serving, and returns the rest of it, which never ends.
    async fn begin(&self) -> impl Future<Output = Infallible> + use<> {
        let begun = match self.follows {
            Some(offer) => offer.begin().await,
            None => None,
        };
        async move {
            match begun {
                Some(keeping) => keeping.await,
                None => std::future::pending().await,
            }
        }
    }
}

/// Does some work in a runtime that suits the place, and leaves behind whatever still waits for a person.
///
/// # Errors
/// What the work says, or what stood in its way.
pub(crate) fn in_runtime<W>(place: Place<'_>, work: W) -> Result<(), Failure>
where
    W: AsyncFnOnce(Signals) -> Result<(), Failure>,
{
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    crate::memory::configure_allocator();
    // One client on two pipes keeps one thread busy at most, and the fewer there are the sooner the first answer is.
    let mut builder = match place {
        Place::Stdio => Builder::new_current_thread(),
        Place::Http(_) => {
            descriptors::raise();
            Builder::new_multi_thread()
        }
    };
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failed, format!("the runtime cannot start: {error}")))?;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    runtime.spawn(crate::memory::trim_periodically());
    let done = runtime.block_on(async { work(install_signals()?).await });
    // A thread may sit in a read of the terminal that nothing can interrupt; leaving must not wait for it.
    runtime.shutdown_background();
    done
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

/// Returns the JSON Schemas of the tables `[serve]` and `[audit]`, by name.
#[cfg(test)]
pub(crate) fn table_schemas() -> [(&'static str, schemars::Schema); 2] {
    let tables = [
        ("serve", schemars::schema_for!(plan::ServeTable)),
        ("audit", schemars::schema_for!(plan::AuditTable)),
    ];
    tables.map(|(name, mut schema)| {
        schema.remove("$schema");
        schema.remove("title");
        (name, schema)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ServeArgs,
    }

    #[test]
    fn clients_without_credentials_are_one_person_only_where_no_other_can_reach_the_hub() {
        use AnonymousClients::{OnePerson, Strangers};
        for (line, expected) in [
            ("", OnePerson),
            ("--stdio", OnePerson),
            ("--http :0", OnePerson),
            ("--http 127.0.0.2:0", OnePerson),
            ("--http [::1]:0", OnePerson),
            ("--http 0.0.0.0:0 --insecure-no-auth", Strangers),
            ("--http [::]:0 --insecure-no-auth", Strangers),
            // A proxy in front of it brings others.
            ("--http :0 --allow-host hub.example.com", Strangers),
            ("--http :0 --auth bearer:tokens", Strangers),
        ] {
            let words = ["serve"].into_iter().chain(line.split_whitespace());
            let Line { args } = Line::try_parse_from(words).unwrap();
            assert_eq!(args.place().anonymous_clients(&args.edge), expected, "{line}");
        }
    }

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
