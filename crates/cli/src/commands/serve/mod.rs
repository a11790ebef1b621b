//! `trunkline serve`: the servers and commands of a file, or built-in servers, over HTTP or standard input and output.
//!
//! # Invariants
//!
//! - The first signal closes standalone streams with their result; a second one ends the process at once:
//!   `standalone_stream_is_closed_with_its_result_on_the_first_signal`, `second_signal_during_drain_exits_immediately`.

mod auth;
mod backend;
mod banner;
mod console;
mod descriptors;
mod excluded_server;
mod gateway;
pub(crate) mod health;
mod http;
mod options;
mod plan;
mod plan_trust;
mod secret_files;
mod session_store;
mod stdio;
mod user_logins;

use std::convert::Infallible;
use std::time::Duration;

use tokio::runtime::Builder;
use trunkline_hub::{AnonymousClients, UserLogins};
use trunkline_server::{Host, HostOptions, Metrics};

use self::auth::AuthSettings;
use self::backend::ServeBackend;
use self::gateway::Gateway;
pub(crate) use self::gateway::OWN_SERVER_NAME;
pub(crate) use self::options::{EdgeArgs, HTTP_HEADING, ServeArgs, is_http_option};
pub(crate) use self::plan::name_template;
use self::plan_trust::TrustMode;
pub(crate) use self::session_store::OpenedStore;
pub(crate) use self::user_logins::user_logins;
use crate::audit::AuditLog;
use crate::exit::{CliFailure, ExitReason};
use crate::logging::LogLevel;
use crate::signals::{HangupSignals, ProcessShutdown, Signal, Signals};
use crate::values::{AuthSource, ListenAddress, StoreLocation};

/// Serves until the peer is gone or a signal comes.
///
/// # Errors
/// A message for the user, and the exit code.
pub(crate) fn run(args: &ServeArgs) -> Result<(), CliFailure> {
    let transport = args.transport();
    transport.init_logging(&args.edge)?;
    // Before signals are handled, so that Ctrl-C ends a question at the terminal.
    let plan = ServeBackend::read_plan(args)?;
    let shutdown = ProcessShutdown::default();
    in_runtime(transport, async |signals| {
        let mut options = args.edge.host_options(&shutdown)?;
        let configured = plan.as_ref().and_then(|plan| plan.store.clone());
        let store = transport.open_store(&args.edge, &mut options, configured).await?;
        let backend = ServeBackend::new(args, plan, store.as_ref())?;
        // A hub handles SIGHUP itself, when it reads its file again.
        let hangups = match backend.gateway() {
            Some(_) => None,
            None => Some(install_hangups()?),
        };
        let metrics = transport.enable_metrics(&mut options);
        options.env = args.env()?;
        let audit = backend.audit(args)?;
        if let Some(audit) = &audit {
            options.layers = options.layers.with(audit.clone());
        }
        options.observer = backend.gateway().map(|gateway| gateway.hub().events().client_observer());
        let telemetry = backend.telemetry();
        let host = backend.host(options)?;
        let serving = PreparedService {
            backend: Some(&backend),
            logins: backend.gateway().map(|gateway| gateway.logins().clone()),
            store,
            has_console: !args.no_console,
            ..PreparedService::new(&args.edge, backend.description(), host, metrics, shutdown)
        };
        let served = tokio::select! {
            served = serving.serve(transport, signals) => served,
            never = reopen_on_hangup(hangups, audit.as_ref(), &args.edge) => match never {},
        };
        backend.shutdown(serving.shutdown.forced_by().is_some()).await;
        if serving.shutdown.forced_by().is_none() {
            telemetry.shutdown().await;
        }
        if let Some(audit) = audit {
            audit.close();
        }
        served
    })
}

/// Where callers come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServeTransport<'a> {
    Stdio,
    Http(&'a ListenAddress),
}

impl ServeTransport<'_> {
    /// Begins to log, over standard input and output only what is worth a warning.
    ///
    /// # Errors
    /// The file for it cannot be opened.
    pub(crate) fn init_logging(self, edge: &EdgeArgs) -> Result<(), CliFailure> {
        edge.log.init(match self {
            ServeTransport::Stdio => LogLevel::Warn,
            ServeTransport::Http(_) => LogLevel::Info,
        })
    }

    /// Returns how clients without credentials are isolated from each other.
    pub(crate) fn anonymous_clients(self, edge: &EdgeArgs, has_auth_table: bool) -> AnonymousClients {
        match self {
            ServeTransport::Stdio => AnonymousClients::SingleUser,
            ServeTransport::Http(address) => {
                http::anonymous_clients(&edge.http, edge.http.auth.is_some() || has_auth_table, address)
            }
        }
    }

    /// Opens the store of sessions, which only HTTP has: other sessions end with their connection.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn open_store(
        self,
        edge: &EdgeArgs,
        options: &mut HostOptions,
        configured: Option<StoreLocation>,
    ) -> Result<Option<OpenedStore>, CliFailure> {
        let store = match self {
            ServeTransport::Stdio => None,
            ServeTransport::Http(_) => session_store::open(&edge.http, options, configured).await?,
        };
        session_store::attach_states(store.as_ref(), options);
        Ok(store)
    }

    /// Has calls counted, unless there is nowhere to read the figures.
    pub(crate) fn enable_metrics(self, options: &mut HostOptions) -> Metrics {
        let metrics = Metrics::new();
        options.metrics = matches!(self, ServeTransport::Http(_)).then(|| metrics.clone());
        metrics
    }
}

/// Something that is ready to be served.
#[derive(Debug)]
pub(crate) struct PreparedService<'a> {
    edge: &'a EdgeArgs,
    /// The displayed description of what is served.
    description: String,
    host: Host,
    metrics: Metrics,
    pub(crate) shutdown: ProcessShutdown,
    /// How users of a hub log in to its servers.
    logins: Option<UserLogins>,
    /// Tasks to start once the endpoint listens.
    backend: Option<&'a ServeBackend>,
    store: Option<OpenedStore>,
    /// Whether the web console is served.
    has_console: bool,
}

impl<'a> PreparedService<'a> {
    /// Prepares a service without background work.
    pub(crate) fn new(
        edge: &'a EdgeArgs,
        description: String,
        host: Host,
        metrics: Metrics,
        shutdown: ProcessShutdown,
    ) -> Self {
        Self {
            edge,
            description,
            host,
            metrics,
            shutdown,
            logins: None,
            backend: None,
            store: None,
            has_console: false,
        }
    }

    /// Serves the pages on which users of a hub log in to its servers.
    pub(crate) fn with_logins(self, logins: Option<UserLogins>) -> Self {
        Self { logins, ..self }
    }

    /// Sets the store of sessions.
    pub(crate) fn with_store(self, store: Option<OpenedStore>) -> Self {
        Self { store, ..self }
    }

    /// Serves until the peer is gone or a signal comes.
    ///
    /// # Errors
    /// What was configured cannot be used, the transport fails, or calls had to be ended.
    pub(crate) async fn serve(
        &self,
        transport: ServeTransport<'_>,
        signals: Signals,
    ) -> Result<(), CliFailure> {
        match transport {
            ServeTransport::Stdio => stdio::serve(self, signals).await,
            ServeTransport::Http(address) => http::serve(self, address, signals).await,
        }
    }

    /// Returns the table `[auth]`: that of `--auth`, or else that of the configuration file.
    ///
    /// # Errors
    /// The file of `--auth` cannot be used.
    fn auth_settings(&self) -> Result<Option<AuthSettings>, CliFailure> {
        match &self.edge.http.auth {
            // The operator names the file for this table.
            Some(AuthSource::Config(file)) => AuthSettings::read(file, TrustMode::Granted).map(Some),
            _ => Ok(self.gateway().and_then(|gateway| {
                let settings = gateway.plan().auth.clone()?;
                Some(settings.with_trust(gateway.trust_mode()))
            })),
        }
    }

    fn gateway(&self) -> Option<&Gateway> {
        self.backend.and_then(ServeBackend::gateway)
    }

    /// Stops connecting to servers in the background, from the first signal on.
    fn begin_shutdown(&self) {
        if let Some(gateway) = self.gateway() {
            gateway.hub().drain();
        }
    }

    /// Starts the background work, and returns the rest of it, which never ends.
    async fn start_backend(&self) -> impl Future<Output = Infallible> + use<> {
        let begun = match self.backend {
            Some(backend) => backend.start().await,
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

/// Runs `work` in a runtime for the transport, and abandons blocking reads at its end.
///
/// # Errors
/// The error of `work`, or of starting the runtime.
pub(crate) fn in_runtime<W>(transport: ServeTransport<'_>, work: W) -> Result<(), CliFailure>
where
    W: AsyncFnOnce(Signals) -> Result<(), CliFailure>,
{
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    crate::memory::configure_allocator();
    // One client on two pipes keeps one thread busy at most, and the fewer there are the sooner the first answer is.
    let mut builder = match transport {
        ServeTransport::Stdio => Builder::new_current_thread(),
        ServeTransport::Http(_) => {
            descriptors::raise();
            Builder::new_multi_thread()
        }
    };
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| CliFailure::new(ExitReason::Failed, format!("cannot start the runtime: {error}")))?;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    runtime.spawn(crate::memory::trim_periodically());
    let done = runtime.block_on(async { work(install_signals()?).await });
    // A thread may sit in a read of the terminal that nothing can interrupt; leaving must not wait for it.
    runtime.shutdown_background();
    done
}

/// Reopens the audit log at each SIGHUP, for log rotation. It never returns.
async fn reopen_on_hangup(
    hangups: Option<HangupSignals>,
    audit: Option<&AuditLog>,
    edge: &EdgeArgs,
) -> Infallible {
    let Some(mut hangups) = hangups else { return std::future::pending().await };
    loop {
        hangups.next().await;
        match audit {
            Some(audit) => {
                audit.reopen();
                tracing::info!("reopened the audit log on SIGHUP");
            }
            // The HTTP listener reads them again.
            None if edge.http.has_secret_files() => {}
            None => {
                tracing::info!("ignored SIGHUP: there is no configuration file, audit log or secret file");
            }
        }
    }
}

fn install_hangups() -> Result<HangupSignals, CliFailure> {
    HangupSignals::install().map_err(|error| signals_failure(&error))
}

fn install_signals() -> Result<Signals, CliFailure> {
    Signals::install().map_err(|error| signals_failure(&error))
}

fn signals_failure(error: &std::io::Error) -> CliFailure {
    CliFailure::new(ExitReason::Failed, format!("cannot listen for signals: {error}"))
}

/// Returns the outcome of a server, by the second signal if there was one and the unanswered calls.
fn exit_result(cut_short: Option<Signal>, aborted: usize, grace: Duration) -> Result<(), CliFailure> {
    let lost = match aborted {
        0 => None,
        1 => Some("1 call was cut off before it finished".to_owned()),
        several => Some(format!("{several} calls were cut off before they finished")),
    };
    match (cut_short, lost) {
        (Some(Signal::Interrupt), lost) => {
            let and = lost.map(|lost| format!("; {lost}")).unwrap_or_default();
            Err(CliFailure::new(
                ExitReason::Interrupted,
                format!("exited immediately on a second signal{and}"),
            ))
        }
        (None | Some(Signal::Terminate), None) => Ok(()),
        (Some(Signal::Terminate), Some(lost)) => Err(CliFailure::new(ExitReason::Failed, lost)),
        (None, Some(lost)) => {
            Err(CliFailure::new(ExitReason::Failed, lost)
                .hint(format!("`--grace` allows more than {grace:?}")))
        }
    }
}

/// Returns the JSON Schema of a table with all that it contains, without references.
#[cfg(test)]
fn inline_schema<T: schemars::JsonSchema>() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.with(|settings| settings.inline_subschemas = true).into_generator().into_root_schema_for::<T>()
}

/// Returns the JSON Schemas of the tables `[serve]`, `[store]`, `[vault]`, `[audit]`, `[telemetry]` and `[auth]`, by
/// name.
#[cfg(test)]
pub(crate) fn table_schemas() -> [(&'static str, schemars::Schema); 6] {
    let tables = [
        ("serve", schemars::schema_for!(plan::ServeTable)),
        ("store", schemars::schema_for!(plan::StoreTable)),
        ("vault", schemars::schema_for!(crate::login::VaultTable)),
        ("audit", schemars::schema_for!(plan::AuditTable)),
        ("telemetry", schemars::schema_for!(crate::telemetry::TelemetryTable)),
        ("auth", inline_schema::<auth::AuthTable>()),
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
    struct ServeCommandLine {
        #[command(flatten)]
        args: ServeArgs,
    }

    #[test]
    fn anonymous_clients_are_single_user_only_on_private_loopback() {
        use AnonymousClients::{Isolated, SingleUser};
        for (line, expected) in [
            ("", SingleUser),
            ("--stdio", SingleUser),
            ("--http :0", SingleUser),
            ("--http 127.0.0.2:0", SingleUser),
            ("--http [::1]:0", SingleUser),
            ("--http 0.0.0.0:0 --insecure-no-auth", Isolated),
            ("--http [::]:0 --insecure-no-auth", Isolated),
            // A proxy in front of it brings others.
            ("--http :0 --allow-host hub.example.com", Isolated),
            ("--http :0 --auth bearer:tokens", Isolated),
        ] {
            let words = ["serve"].into_iter().chain(line.split_whitespace());
            let ServeCommandLine { args } = ServeCommandLine::try_parse_from(words).unwrap();
            assert_eq!(args.transport().anonymous_clients(&args.edge, false), expected, "{line}");
        }
    }

    #[test]
    fn exit_code_reports_lost_calls_and_second_signals() {
        for (cut_short, aborted, expected) in [
            (None, 0, ExitReason::Ok),
            (None, 1, ExitReason::Failed),
            (Some(Signal::Terminate), 0, ExitReason::Ok),
            (Some(Signal::Terminate), 2, ExitReason::Failed),
            (Some(Signal::Interrupt), 0, ExitReason::Interrupted),
            (Some(Signal::Interrupt), 2, ExitReason::Interrupted),
        ] {
            let outcome = exit_result(cut_short, aborted, Duration::from_secs(30));
            let exit = outcome.map_or_else(|failure| failure.exit(), |()| ExitReason::Ok);
            assert_eq!(exit, expected, "{cut_short:?} {aborted}");
        }
    }
}
