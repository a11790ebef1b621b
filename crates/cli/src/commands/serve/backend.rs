use std::convert::Infallible;
use std::task::Poll;

use trunkline_config::ServerConfig;
use trunkline_server::{Host, HostOptions};

use super::ServeArgs;
use super::gateway::{Gateway, poll_once};
use super::plan::{PlanSource, ServePlan};
use super::session_store::OpenedStore;
use crate::audit::{ArgumentLogging, AuditLog};
use crate::builtin::{self, BuiltinServer};
use crate::exit::{CliFailure, ExitReason};
use crate::telemetry::{self, ProcessTelemetry};

/// What is served: only built-in servers, or a configuration file.
#[derive(Debug)]
pub(super) enum ServeBackend {
    /// Without a file: served directly, without a hub.
    Builtin(Vec<BuiltinServer>),
    /// The hub of a file, and the servers that it begins with.
    Hub(Gateway, Vec<ServerConfig>),
}

impl ServeBackend {
    /// Reads the file, if there is one, and prompts for trust in it.
    ///
    /// # Errors
    /// What is wrong with the file, or it is not trusted.
    pub(super) fn read_plan(args: &ServeArgs) -> Result<Option<ServePlan>, CliFailure> {
        let source = if args.no_config { None } else { PlanSource::find(args.config.as_deref()) };
        let Some(source) = source else { return Ok(None) };
        // A hub that starts itself fails before any prompt.
        Gateway::enclosing_hubs(source.path())?;
        source.read()?.ensure_trusted(args.trust_mode()).map(Some)
    }

    /// Prepares what a plan describes, or the built-in servers. It has to be called within a runtime.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub(super) fn new(
        args: &ServeArgs,
        plan: Option<ServePlan>,
        store: Option<&OpenedStore>,
    ) -> Result<Self, CliFailure> {
        match plan {
            Some(plan) => {
                for note in plan.file.warnings() {
                    tracing::info!("{note}");
                }
                let gateway = Gateway::new(args, plan, store)?;
                let servers = gateway.prepare(&gateway.plan())?;
                Ok(Self::Hub(gateway, servers))
            }
            None if args.builtin.is_empty() => Ok(Self::Builtin(BuiltinServer::ALL.to_vec())),
            None => Ok(Self::Builtin(args.builtin.clone())),
        }
    }

    /// Opens the audit log, if one is configured.
    ///
    /// # Errors
    /// It cannot be opened, or there is none that arguments could be written into.
    pub(super) fn audit(&self, args: &ServeArgs) -> Result<Option<AuditLog>, CliFailure> {
        let said = self.gateway().map(|gateway| gateway.plan().audit.clone()).unwrap_or_default();
        let Some(file) = args.audit.clone().or(said.file) else {
            return match args.audit_arguments {
                true => Err(CliFailure::configuration("`--audit-arguments` needs an audit log")
                    .hint("set one with `--audit FILE`, or under [audit] in the config file")),
                false => Ok(None),
            };
        };
        let written = args.audit_arguments || said.arguments;
        let arguments = if written { ArgumentLogging::Full } else { ArgumentLogging::SizeOnly };
        let audit = AuditLog::open(&file, arguments, said.on_failure).map_err(|error| {
            CliFailure::configuration(format!("cannot open audit log {}: {error}", file.display()))
                .hint("use a file in an existing folder that you can write to")
        })?;
        Ok(Some(match self.gateway() {
            Some(gateway) => {
                // What the hub keeps must not keep the hub.
                gateway.set_audit(audit.clone());
                audit.with_owner_lookup(gateway.clone())
            }
            None => audit,
        }))
    }

    /// Begins to export traces and metrics, if that is configured.
    pub(super) fn telemetry(&self) -> ProcessTelemetry {
        let Some(gateway) = self.gateway() else { return ProcessTelemetry::default() };
        let settings = telemetry::settings(&gateway.plan().telemetry);
        ProcessTelemetry::start(gateway.hub().events(), settings.as_ref())
    }

    /// Makes it ready to be served.
    ///
    /// # Errors
    /// The state key is missing.
    pub(super) fn host(&self, options: HostOptions) -> Result<Host, CliFailure> {
        match self {
            Self::Builtin(builtin) => builtin::server(builtin).host(options),
            Self::Hub(gateway, _) => Host::new(gateway.hub().clone(), options).map_err(Into::into),
        }
        .map_err(|error| CliFailure::new(ExitReason::Failed, error))
    }

    pub(super) fn gateway(&self) -> Option<&Gateway> {
        match self {
            Self::Builtin(_) => None,
            Self::Hub(gateway, _) => Some(gateway),
        }
    }

    /// Starts applying the file to the hub. When this returns, its servers are registered and can be called; the returned
    /// future connects to them, follows the file, and never ends.
    pub(super) async fn start(&self) -> Option<impl Future<Output = Infallible> + use<>> {
        let Self::Hub(gateway, servers) = self else { return None };
        gateway.print_all_servers();
        let (gateway, servers) = (gateway.clone(), servers.clone());
        let mut keeping = Box::pin(async move { gateway.run(servers).await });
        // The servers are made known before the first of them is waited for.
        match poll_once(&mut keeping).await {
            Poll::Ready(never) => match never {},
            Poll::Pending => Some(keeping),
        }
    }

    /// Ends every program that was started. Who is in a hurry does not wait for them: without us they are ended.
    pub(super) async fn shutdown(&self, in_a_hurry: bool) {
        let Some(gateway) = self.gateway() else { return };
        gateway.close_admin_socket();
        if !in_a_hurry {
            gateway.shutdown().await;
        }
    }

    /// Lists what is served, for display.
    pub(super) fn description(&self) -> String {
        match self {
            Self::Builtin(builtin) => builtin::names(builtin),
            Self::Hub(gateway, _) => gateway.summary(),
        }
    }
}
