use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use parking_lot::Mutex;
use trunkline_client::transport::Target;
use trunkline_client::{BoxFuture, Client, ClientBuilder, EraCache, Error};
use trunkline_config::{
    AuthKind, ConfigFile, ConfigFormat, ConfigVariables, LocalProgram, RemoteEndpoint, ServerConfig,
    ServerLocation, ServerName,
};
use trunkline_hub::{AccessRules, Connector, Hub, HubLimits, HubOptions, UserLogins};
use trunkline_server::Host;

use super::serve::{
    EdgeArgs, HTTP_HEADING, OpenedStore, PreparedService, ServeTransport, in_runtime, is_http_option,
    user_logins,
};
use crate::config_failure::config_failure;
use crate::connect::{
    ConnectSettings, ResolvedTarget, TargetArgs, TargetOptionArgs, connect_failure, interrupted, resolve,
    target_help,
};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::login::VaultSettings;
use crate::signals::{ProcessShutdown, Signals};
use crate::telemetry::{self, ProcessTelemetry};
use crate::terminal::escape_line;
use crate::values::ListenAddress;

/// Proxy one server for clients of any protocol version
#[derive(Debug, Args)]
#[command(
    next_line_help = true,
    override_usage = "trunkline bridge [OPTIONS] TARGET\n       trunkline bridge [OPTIONS] -- COMMAND [ARG]...",
    mut_args(|arg| if is_http_option(&arg) && arg.get_id() != "address" { arg.requires("address") } else { arg }),
    after_help = target_help(
        "Names and URIs stay unchanged.\n\n\
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
    target_options: TargetOptionArgs,
    /// Serve HTTP instead of stdio, on HOST:PORT, :PORT or PORT;
    /// port 0 picks a free one
    #[arg(verbatim_doc_comment, long = "http", value_name = "ADDR", help_heading = HTTP_HEADING)]
    address: Option<ListenAddress>,
    #[command(flatten)]
    edge: EdgeArgs,
}

/// Proxies a server until the client disconnects or a signal arrives.
///
/// # Errors
/// The server cannot be reached, or what `serve` fails with.
pub(crate) fn run(args: &BridgeArgs) -> Result<(), CliFailure> {
    let words = args.target.parse()?;
    words.expect_end()?;
    let transport = args.address.as_ref().map_or(ServeTransport::Stdio, ServeTransport::Http);
    transport.init_logging(&args.edge)?;
    let resolved = resolve(&args.target_options, words.target)?;
    announce(&resolved, transport);
    let only = SingleServerConnector::new(ConnectSettings::new(&args.target_options, &resolved)?);
    in_runtime(transport, async |signals| bridge(args, transport, &resolved, only, signals).await)
}

/// Prints or logs the command line that is about to be started.
fn announce(resolved: &ResolvedTarget, transport: ServeTransport<'_>) {
    for announcement in &resolved.announcements {
        let announcement = escape_line(announcement);
        if matches!(transport, ServeTransport::Stdio) && std::io::stderr().is_terminal() {
            print_stderr(&format!("{announcement}\n"));
        } else {
            tracing::info!("{announcement}");
        }
    }
}

async fn bridge(
    args: &BridgeArgs,
    transport: ServeTransport<'_>,
    resolved: &ResolvedTarget,
    only: SingleServerConnector,
    mut signals: Signals,
) -> Result<(), CliFailure> {
    let shutdown = ProcessShutdown::default();
    let mut options = args.edge.host_options(&shutdown)?;
    let metrics = transport.enable_metrics(&mut options);
    let vault = args.target_options.config.as_ref().or(resolved.config_file.as_ref());
    let vault = vault.map(|path| VaultSettings::of_config(path)).transpose()?.flatten();
    let logins = user_logins(transport.anonymous_clients(&args.edge, false), vault.as_ref(), None)?;
    let store = transport.open_store(&args.edge, &mut options, None).await?;
    // The bridge connects to its server before it responds to clients.
    let hub = tokio::select! {
        hub = connect(args, transport, resolved, only, &logins, store.as_ref()) => hub?,
        _ = signals.next() => return Err(interrupted()),
    };
    let file = args.target_options.config.as_ref().or(resolved.config_file.as_ref());
    let exported = telemetry::settings(&telemetry::options_of_config(file.map(PathBuf::as_path))?);
    let telemetry = ProcessTelemetry::start(hub.events(), exported.as_ref());
    // Nothing else follows the calls of a bridge.
    options.observer = exported.is_some().then(|| hub.events().client_observer());
    let host = Host::new(hub.clone(), options).map_err(|error| CliFailure::new(ExitReason::Failed, error))?;
    let label = escape_line(&resolved.label).into_owned();
    let serving = PreparedService::new(&args.edge, label, host, metrics, shutdown)
        .with_logins(Some(logins))
        .with_store(store);
    let served = serving.serve(transport, signals).await;
    if serving.shutdown.forced_by().is_none() {
        hub.shutdown().await;
        telemetry.shutdown().await;
    }
    served
}

async fn connect(
    args: &BridgeArgs,
    transport: ServeTransport<'_>,
    resolved: &ResolvedTarget,
    only: SingleServerConnector,
    logins: &UserLogins,
    store: Option<&OpenedStore>,
) -> Result<Hub, CliFailure> {
    let mut server = match &resolved.configured {
        Some(server) => server.clone(),
        None => placeholder_config(resolved, &only.settings)?,
    };
    server.timeout = args.target_options.timeout.or(server.timeout);
    let limits = HubLimits { message_bytes: args.edge.max_upstream_message, ..HubLimits::default() };
    let anonymous = transport.anonymous_clients(&args.edge, false);
    let connector = Arc::new(only.clone());
    let access = access_rules(args, resolved)?;
    let logins = Some(logins.clone());
    let upstream_sessions = store.map(OpenedStore::upstream_sessions);
    let options = HubOptions {
        connector,
        anonymous,
        limits,
        access,
        logins,
        upstream_sessions,
        ..HubOptions::default()
    };
    let connected = Hub::bridge(server, options).await;
    connected.map_err(|error| match only.failure() {
        Some(failure) => connect_failure(failure, &resolved.label),
        None => CliFailure::new(ExitReason::Unreachable, error),
    })
}

/// Reads the access rules of the file that was named, or in which the server was found.
fn access_rules(args: &BridgeArgs, resolved: &ResolvedTarget) -> Result<AccessRules, CliFailure> {
    let file = args.target_options.config.as_ref().or(resolved.config_file.as_ref());
    let Some(path) = file.filter(|path| ConfigFormat::of(path) == ConfigFormat::Toml) else {
        return Ok(AccessRules::default());
    };
    let file = ConfigFile::open(path, ConfigVariables::from_environment());
    let file = file.map_err(|error| config_failure(error.problems()))?;
    let rules = file.access_rules().map_err(|problem| config_failure(&[problem]))?;
    Ok(AccessRules::new(rules))
}

/// Creates the configuration of a server that is in no file. [`SingleServerConnector`] connects to it; the label is only for
/// messages.
fn placeholder_config(
    resolved: &ResolvedTarget,
    settings: &ConnectSettings,
) -> Result<ServerConfig, CliFailure> {
    let name = ServerName::parse("upstream").map_err(|error| CliFailure::new(ExitReason::Failed, error))?;
    let location = match &resolved.target {
        // A server at an address may demand a login.
        Target::Url(url) => ServerLocation::Endpoint(RemoteEndpoint::new(&*url.to_full_string())),
        _ => ServerLocation::Program(LocalProgram::new(&*resolved.label)),
    };
    let mut config = ServerConfig::new(name, location);
    if settings.has_authorization() {
        config.auth.kind = AuthKind::None;
    }
    Ok(config)
}

/// Connects to the one server of a command line, and keeps why that failed last.
#[derive(Clone)]
struct SingleServerConnector {
    settings: Arc<ConnectSettings>,
    era_cache: EraCache,
    failure: Arc<Mutex<Option<Error>>>,
}

impl SingleServerConnector {
    fn new(way: ConnectSettings) -> Self {
        Self { settings: Arc::new(way), era_cache: EraCache::default(), failure: Arc::default() }
    }

    fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }
}

impl Connector for SingleServerConnector {
    fn connect(&self, _: &ServerConfig, builder: ClientBuilder) -> BoxFuture<'static, Result<Client, Error>> {
        let builder = self.settings.prepare(builder).era_cache(self.era_cache.clone());
        let connecting = builder.connect(self.settings.target.clone());
        let failure = Arc::clone(&self.failure);
        Box::pin(async move {
            let connected = connecting.await;
            *failure.lock() = connected.as_ref().err().cloned();
            connected
        })
    }
}
