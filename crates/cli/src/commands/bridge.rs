use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use parking_lot::Mutex;
use trunkline_client::{BoxFuture, Builder, Client, Error, Verdicts};
use trunkline_config::{Program, Reach, ServerConfig, ServerName};
use trunkline_hub::{Connector, Hub, HubLimits, HubOptions};
use trunkline_server::Host;

use super::serve::{EdgeArgs, HTTP, Place, Serving, in_runtime, is_for_http};
use crate::connect::{ReachArgs, Resolved, TargetArgs, Way, failed_to_connect, help, interrupted, resolve};
use crate::exit::{Exit, Failure, say};
use crate::signals::{Departure, Signals};
use crate::terminal::visible_line;
use crate::values::ListenAddress;

/// Stand in for a server, for clients of every revision
#[derive(Debug, Args)]
#[command(
    next_line_help = true,
    override_usage = "trunkline bridge [OPTIONS] TARGET\n       trunkline bridge [OPTIONS] -- COMMAND [ARG]...",
    mut_args(|arg| if is_for_http(&arg) && arg.get_id() != "address" { arg.requires("address") } else { arg }),
    after_help = help(
        "Names and addresses of what the server offers stay as they are.\n\n\
Examples:\n  \
trunkline bridge https://example.com/mcp\n  \
trunkline bridge --http :7412 -- npx -y some-server\n  \
trunkline bridge --revision 2024-11-05 shop"
    )
)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    reach: ReachArgs,
    /// Serve HTTP instead of standard input and output: HOST:PORT, :PORT
    /// or PORT, where 0 is any
    #[arg(verbatim_doc_comment, long = "http", value_name = "ADDR", help_heading = HTTP)]
    address: Option<ListenAddress>,
    #[command(flatten)]
    edge: EdgeArgs,
}

/// Stands in for a server until the peer is gone or a signal comes.
///
/// # Errors
/// The server cannot be reached, or what `serve` fails with.
pub(crate) fn run(args: &BridgeArgs) -> Result<(), Failure> {
    let words = args.target.words()?;
    words.end()?;
    let place = args.address.as_ref().map_or(Place::Stdio, Place::Http);
    place.begin_log(&args.edge)?;
    let resolved = resolve(&args.reach, words.target)?;
    announce(&resolved, place);
    let only = Only::new(Way::new(&args.reach, &resolved)?);
    in_runtime(place, async |signals| bridge(args, place, &resolved, only, signals).await)
}

/// Says what is about to be started, if somebody reads it.
fn announce(resolved: &Resolved, place: Place<'_>) {
    let Some(announcement) = &resolved.announcement else { return };
    let announcement = visible_line(announcement);
    if matches!(place, Place::Stdio) && std::io::stderr().is_terminal() {
        say(&format!("{announcement}\n"));
    } else {
        tracing::info!("{announcement}");
    }
}

async fn bridge(
    args: &BridgeArgs,
    place: Place<'_>,
    resolved: &Resolved,
    only: Only,
    mut signals: Signals,
) -> Result<(), Failure> {
    let departure = Departure::default();
    let mut options = args.edge.host_options(&departure)?;
    let metrics = place.count(&mut options);
    // Nobody is answered by a bridge that leads nowhere.
    let hub = tokio::select! {
        hub = connect(args, place, resolved, only) => hub?,
        _ = signals.next() => return Err(interrupted()),
    };
    let host = Host::new(hub.clone(), options).map_err(|error| Failure::new(Exit::Failed, error))?;
    let offer = visible_line(&resolved.label).into_owned();
    let serving = Serving::new(&args.edge, offer, host, metrics, departure);
    let served = serving.serve(place, signals).await;
    if serving.departure.cut_short().is_none() {
        hub.shutdown().await;
    }
    served
}

async fn connect(
    args: &BridgeArgs,
    place: Place<'_>,
    resolved: &Resolved,
    only: Only,
) -> Result<Hub, Failure> {
    let mut server = match &resolved.configured {
        Some(server) => server.clone(),
        None => unnamed(resolved)?,
    };
    server.timeout = args.reach.timeout.or(server.timeout);
    let limits = HubLimits { message_bytes: args.edge.max_message, ..HubLimits::default() };
    let anonymous = place.anonymous_clients(&args.edge);
    let connector = Arc::new(only.clone());
    let options = HubOptions { connector, anonymous, limits, ..HubOptions::default() };
    let connected = Hub::bridge(server, options).await;
    connected.map_err(|error| match only.failure() {
        Some(failure) => failed_to_connect(failure, &resolved.label),
        None => Failure::new(Exit::Unreachable, error),
    })
}

/// Describes a server that no file describes. How it is reached is up to [`Only`]; what is said of it here is for people.
fn unnamed(resolved: &Resolved) -> Result<ServerConfig, Failure> {
    let name = ServerName::parse("upstream").map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(ServerConfig::new(name, Reach::Program(Program::new(&*resolved.label))))
}

/// Connects to the one server of a command line, and keeps why that failed last.
#[derive(Clone)]
struct Only {
    way: Arc<Way>,
    verdicts: Verdicts,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Only {
    fn new(way: Way) -> Self {
        Self { way: Arc::new(way), verdicts: Verdicts::default(), failure: Arc::default() }
    }

    fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }
}

impl Connector for Only {
    fn connect(&self, _: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>> {
        let builder = self.way.prepare(builder).verdicts(self.verdicts.clone());
        let connecting = builder.connect(self.way.target.clone());
        let failure = Arc::clone(&self.failure);
        Box::pin(async move {
            let connected = connecting.await;
            *failure.lock() = connected.as_ref().err().cloned();
            connected
        })
    }
}
