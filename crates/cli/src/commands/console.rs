use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use serde_json::json;
use tokio::net::TcpListener;
use trunkline_console::{
    Console, ConsoleOptions, ConsoleRole, ConsoleServer, ConsoleServerCost, ConsoleServerDetails,
    ConsoleSource, ServerReports,
};
use trunkline_hub::CallFigureReport;
use trunkline_hub::events::RecordReader;
use trunkline_server::http::{
    self, HttpServerOptions, HttpService, IncomingRequest, McpResponseBody, Service,
};
use trunkline_server::{HostOptions, Server};

use super::manage::{FileArgs, HubArgs};
use super::serve::{ServeTransport, in_runtime};
use crate::connect::print_stdout;
use crate::exit::{CliFailure, ExitReason};
use crate::signals::{ProcessShutdown, Signals};
use crate::values::ListenAddress;

/// The longest record file that is shown; the page has the same limit.
const MAX_RECORD_BYTES: u64 = 256 << 20;

/// Open the web console of the running hub, or view a record file
#[derive(Debug, Args)]
#[command(after_help = "Prints a link, which opens once and within an hour. With FILE it serves the\n\
console with that record until Ctrl-C, without a hub.\n\n\
Examples:\n  \
trunkline console\n  \
trunkline console --read-only\n  \
trunkline console calls.jsonl")]
pub(crate) struct ConsoleArgs {
    /// Record file to view
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["config", "json", "admin_socket", "read_only"])]
    file: Option<PathBuf>,
    /// Make a link that cannot change anything
    #[arg(long)]
    read_only: bool,
    /// Where to serve a record file
    #[arg(long = "http", value_name = "ADDR", default_value = "127.0.0.1:0", requires = "file")]
    address: ListenAddress,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    config: FileArgs,
}

/// Prints a link to the console of the running hub, or serves a record file.
///
/// # Errors
/// No hub runs, it has no console, or the file cannot be shown.
pub(crate) fn run(args: &ConsoleArgs) -> Result<(), CliFailure> {
    match &args.file {
        Some(file) => view(file, &args.address),
        None => print_link(args).map_err(|failure| failure.with_json(args.config.json)),
    }
}

fn print_link(args: &ConsoleArgs) -> Result<(), CliFailure> {
    let path = args.config.path()?;
    let hub = args.hub.find(&path)?.ok_or_else(|| {
        CliFailure::new(ExitReason::Unreachable, format!("no hub is running from {}", path.display()))
            .hint("start one with `trunkline serve`")
    })?;
    let link = hub.console_link(args.read_only)?;
    print_stdout(&if args.config.json {
        format!("{}\n", json!({ "url": link }))
    } else {
        format!("{link}\n")
    })
}

/// Serves a record file until a signal comes.
fn view(path: &Path, address: &ListenAddress) -> Result<(), CliFailure> {
    let source = read_record(path)?;
    in_runtime(ServeTransport::Http(address), async |signals| serve_view(source, address, signals).await)
}

fn read_record(path: &Path) -> Result<ConsoleSource, CliFailure> {
    let failure = |reason: &dyn std::fmt::Display| {
        CliFailure::configuration(format!("cannot show {}: {reason}", path.display()))
    };
    let file = File::open(path).map_err(|error| failure(&error))?;
    let mut content = Vec::new();
    file.take(MAX_RECORD_BYTES + 1).read_to_end(&mut content).map_err(|error| failure(&error))?;
    if content.len() as u64 > MAX_RECORD_BYTES {
        return Err(failure(&format!("it is longer than {} MiB", MAX_RECORD_BYTES >> 20)));
    }
    RecordReader::new(BufReader::new(&*content)).map_err(|error| failure(&error))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(ConsoleSource::Record { name, content: content.into() })
}

async fn serve_view(
    source: ConsoleSource,
    wanted: &ListenAddress,
    signals: Signals,
) -> Result<(), CliFailure> {
    let failed =
        |error: io::Error| CliFailure::new(ExitReason::Failed, format!("cannot listen on {wanted}: {error}"));
    let addresses = wanted.resolve().map_err(failed)?;
    if addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(CliFailure::configuration("a record file is served on the loopback only")
            .hint("copy the file to the other machine and view it there"));
    }
    let listener = TcpListener::bind(&*addresses).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let shutdown = ProcessShutdown::default();
    let options = HostOptions { shutdown: shutdown.shutdown().clone(), ..HostOptions::default() };
    let host =
        Server::new("console").host(options).map_err(|error| CliFailure::new(ExitReason::Failed, error))?;
    let guard = host.http_service(HttpServerOptions::for_address(address.ip()));
    let console = Console::new(ConsoleOptions {
        source,
        reports: Arc::new(NoServers),
        caller: None,
        controls: None,
        shutdown: shutdown.shutdown().clone(),
        version: env!("CARGO_PKG_VERSION"),
    });
    console.set_origin(&format!("http://{address}"));
    let link = console.make_link(ConsoleRole::Viewer).unwrap_or_default();
    print_stdout(&format!("{link}\n"))?;
    let service = ViewService { guard: guard.clone(), console };
    tokio::select! {
        never = shutdown.handle_signals(signals, Duration::ZERO, || {}) => match never {},
        served = http::serve(listener, &guard, service, Duration::ZERO) => served.map(drop).map_err(failed),
    }
}

/// A view has no hub.
#[derive(Debug)]
struct NoServers;

impl ServerReports for NoServers {
    fn servers(&self) -> Vec<ConsoleServer> {
        Vec::new()
    }

    fn server(&self, _: &str) -> Option<ConsoleServerDetails> {
        None
    }

    fn call_figures(&self, _: Option<u32>) -> Option<CallFigureReport> {
        None
    }

    fn costs(&self) -> Vec<ConsoleServerCost> {
        Vec::new()
    }
}

/// The console alone.
#[derive(Clone, Debug)]
struct ViewService {
    guard: HttpService,
    console: Console,
}

impl Service for ViewService {
    type Body = McpResponseBody;

    async fn respond(&self, request: IncomingRequest) -> ::http::Response<McpResponseBody> {
        self.console.respond(&self.guard, request).await
    }
}
