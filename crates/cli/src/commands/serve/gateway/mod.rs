//! The hub of a configuration file, which follows the file while it runs.

mod admin;
#[cfg(unix)]
mod admin_requests;
mod config_watcher;
mod connector;
mod console_controls;
mod console_servers;
mod listing;
#[cfg(unix)]
mod login_requests;
mod own_server;
mod reload;
mod run;
mod self_reference;
mod session_requests;
mod session_source;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use trunkline_config::ServerConfig;
use trunkline_console::Console;
use trunkline_hub::{
    AccessDecision, AnonymousClients, ApplyReport, Hub, HubLimits, HubOptions, ProcessCaller,
    UpstreamConnectionState, UpstreamStatus, UserLogins,
};
use trunkline_server::protocol::Method;
use trunkline_server::{CallerIdentity, ServerLimits};

use self::admin::GatewaySocket;
use self::connector::GatewayConnector;
pub(crate) use self::own_server::OWN_SERVER_NAME;
use self::own_server::OwnServer;
pub(super) use self::run::poll_once;
pub(super) use self::session_source::SessionSource;
use super::ServeArgs;
use super::plan::ServePlan;
use super::plan_trust::TrustMode;
use super::session_store::OpenedStore;
use super::user_logins;
use crate::audit::{AuditLog, AuditSlot, ItemOwnerLookup};
use crate::builtin::BuiltinServer;
use crate::exit::CliFailure;
use crate::signals::HangupSignals;
use crate::state_folder::listings_of_config;
use crate::terminal::escape_line;

/// A hub that follows a file. Clones are the same.
#[derive(Clone)]
pub(crate) struct Gateway {
    inner: Arc<GatewayInner>,
}

struct GatewayInner {
    hub: Hub,
    logins: UserLogins,
    connector: Arc<GatewayConnector>,
    /// The built-in servers given on the command line.
    builtin: Vec<BuiltinServer>,
    limits: ServerLimits,
    plan: Mutex<Arc<ServePlan>>,
    /// Held while the file is read and applied.
    reload_lock: tokio::sync::Mutex<()>,
    /// What was wrong with the file when it was last read again.
    last_problem: Mutex<Option<String>>,
    /// Taken by the task that listens for them.
    hangup_signals: Mutex<Option<HangupSignals>>,
    /// The admin socket.
    admin_socket: Option<GatewaySocket>,
    /// Where the hub is served, if that is an address.
    url: OnceLock<String>,
    /// What has the legacy sessions, once it is served.
    sessions: OnceLock<SessionSource>,
    /// The links that were made for the user of this machine.
    #[cfg(unix)]
    login_links: login_requests::LocalLinks,
    /// The web console, if it is served.
    console: OnceLock<Console>,
    /// Where calls are noted down, if anywhere.
    audit: AuditSlot,
    /// Whether standard error carries JSON lines and so nothing else.
    stderr_is_json: bool,
    trust_mode: TrustMode,
}

impl Gateway {
    /// Makes the hub of a plan, without its servers. It has to be made within a runtime.
    ///
    /// # Errors
    /// The hub was started by itself, or cannot listen on its admin socket.
    pub(super) fn new(
        args: &ServeArgs,
        plan: ServePlan,
        store: Option<&OpenedStore>,
    ) -> Result<Self, CliFailure> {
        let wiring = Arc::new(GatewayConnector::new(Self::enclosing_hubs(plan.source.path())?));
        let mut limits = HubLimits { message_bytes: args.edge.max_upstream_message, ..HubLimits::default() };
        if let Some(list_wait) = args.list_wait.or(plan.serve.list_wait) {
            limits.first_list_timeout = list_wait;
        }
        let anonymous = args.transport().anonymous_clients(&args.edge, plan.auth.is_some());
        let audit = AuditSlot::default();
        let logins = user_logins(anonymous, plan.vault.as_ref(), Some(&audit))?;
        let mut options = HubOptions {
            connector: wiring.clone(),
            anonymous,
            process: process_caller(anonymous),
            limits,
            listings_file: listings_of_config(plan.source.path()),
            access: plan.access.clone(),
            caller_rate: plan.limits.principal,
            logins: Some(logins.clone()),
            upstream_sessions: store.map(OpenedStore::upstream_sessions),
            ..HubOptions::default()
        };
        if let Some(names) = args.names.clone().or_else(|| plan.serve.names.clone()) {
            options.names = names;
        }
        let hangups = super::install_hangups()?;
        let inner = GatewayInner {
            hub: Hub::new(options),
            logins,
            connector: wiring,
            builtin: args.builtin.clone(),
            limits: args.edge.limits(),
            reload_lock: tokio::sync::Mutex::default(),
            last_problem: Mutex::default(),
            hangup_signals: Mutex::new(Some(hangups)),
            admin_socket: GatewaySocket::open(args.admin_socket.as_deref(), plan.source.path())?,
            url: OnceLock::new(),
            sessions: OnceLock::new(),
            #[cfg(unix)]
            login_links: login_requests::LocalLinks::default(),
            console: OnceLock::new(),
            audit,
            stderr_is_json: args.edge.log.stderr_is_json(),
            trust_mode: args.trust_mode(),
            plan: Mutex::new(Arc::new(plan)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the digests of the hubs around the hub of a file, and its own.
    ///
    /// # Errors
    /// This process was itself started by a hub of the file.
    pub(super) fn enclosing_hubs(file: &Path) -> Result<String, CliFailure> {
        self_reference::enclosing_hubs(file)
    }

    /// Returns how its users log in to its servers.
    pub(crate) fn logins(&self) -> &UserLogins {
        &self.inner.logins
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    /// Returns the current plan.
    pub(super) fn plan(&self) -> Arc<ServePlan> {
        self.inner.plan.lock().clone()
    }

    /// Returns whether what the file starts and uses has to be trusted first.
    pub(super) fn trust_mode(&self) -> TrustMode {
        self.inner.trust_mode
    }

    fn set_plan(&self, plan: ServePlan) {
        *self.inner.plan.lock() = Arc::new(plan);
    }

    /// Notes where the hub is served.
    pub(super) fn set_url(&self, url: String, address: SocketAddr) {
        self.inner.connector.set_address(address);
        // It is served at one address only.
        let _ = self.inner.url.set(url);
    }

    /// Sets what has the legacy sessions.
    pub(super) fn set_sessions(&self, sessions: SessionSource) {
        // A hub is served in one way only.
        let _ = self.inner.sessions.set(sessions);
    }

    /// Sets the web console, for links that are requested later.
    pub(super) fn set_console(&self, console: Console) {
        // There is one for as long as the hub.
        let _ = self.inner.console.set(console);
    }

    /// Notes where calls are noted down.
    pub(super) fn set_audit(&self, audit: AuditLog) {
        // There is one for as long as the hub.
        let _ = self.inner.audit.set(audit);
    }

    /// Builds trunkline's own server from a plan, and returns all servers of the hub.
    ///
    /// # Errors
    /// What trunkline has itself does not fit together; nothing has changed.
    pub(super) fn prepare(&self, plan: &ServePlan) -> Result<Vec<ServerConfig>, CliFailure> {
        let own = OwnServer::build(&self.builtin(plan), &plan.described, self.inner.limits.clone())?;
        let mut slot = self.inner.connector.own_server();
        let stays = matches!((&*slot, &own), (Some(old), Some(new)) if old.is_same_as(new));
        if !stays {
            *slot = own;
        }
        let own = slot.as_ref().and_then(OwnServer::config);
        Ok(own.into_iter().chain(plan.servers.iter().cloned()).collect())
    }

    /// Returns the built-in servers to serve: who has anything else wants that, and they are there for who has nothing yet.
    fn builtin(&self, plan: &ServePlan) -> Vec<BuiltinServer> {
        let nothing = self.inner.builtin.is_empty() && plan.is_empty();
        if nothing { BuiltinServer::ALL.to_vec() } else { self.inner.builtin.clone() }
    }

    /// Applies the servers, and logs which of them are unavailable.
    async fn apply(&self, servers: Vec<ServerConfig>) -> ApplyReport {
        let mut applied = self.inner.hub.set_servers(servers).await;
        let lists = [&mut applied.added, &mut applied.removed, &mut applied.updated, &mut applied.unchanged];
        for names in lists {
            names.retain(|name| *name != OWN_SERVER_NAME);
        }
        for (server, reason) in &applied.failed {
            tracing::warn!(%server, "unavailable: {}; retrying", escape_line(reason));
        }
        applied
    }

    /// Logs which servers and commands of the file the hub leaves out, and why.
    pub(super) fn log_excluded(&self) {
        for server in &self.plan().excluded {
            let (name, reason) = (escape_line(&server.name), escape_line(&server.reason));
            tracing::warn!(server = &*name, "unavailable: {reason}");
        }
        for (name, problem) in &self.plan().described.unavailable {
            tracing::warn!(command = &*escape_line(name), "unavailable: {problem}");
        }
    }

    /// Returns why the hub is not ready: each unavailable required server with the reason.
    pub(super) fn unready_servers(&self) -> Vec<(String, String)> {
        let plan = self.plan();
        let required = plan.servers.iter().filter(|server| server.required && server.enabled);
        let missing = required.filter_map(|server| {
            let reason = match self.inner.hub.status_of(server.name.as_str()) {
                Ok(status) if is_healthy(&status) => return None,
                Ok(status) => status.reason.unwrap_or_else(|| format!("it is {}", status.state)),
                Err(_) => "not started yet".to_owned(),
            };
            Some((server.name.to_string(), reason))
        });
        let excluded = plan.excluded.iter().filter(|server| server.required);
        missing.chain(excluded.map(|server| (server.name.clone(), server.reason.clone()))).collect()
    }

    /// Returns the state of every server of the file, and the reason where there is one.
    pub(super) fn server_summaries(&self) -> Vec<(String, &'static str, Option<String>)> {
        let statuses = self.server_statuses().into_iter();
        let known = statuses.map(|status| (status.name.to_string(), status.state.as_str(), status.reason));
        let plan = self.plan();
        let excluded = plan.excluded.iter();
        let excluded =
            excluded.map(|server| (server.name.clone(), server.cause.state(), Some(server.reason.clone())));
        known.chain(excluded).collect()
    }

    /// Returns the status of every server of the file that the hub has.
    pub(super) fn server_statuses(&self) -> Vec<UpstreamStatus> {
        self.inner.hub.status().into_iter().filter(|status| status.name != OWN_SERVER_NAME).collect()
    }

    /// Removes the admin socket.
    pub(super) fn close_admin_socket(&self) {
        if let Some(socket) = &self.inner.admin_socket {
            socket.unlink();
        }
    }

    /// Ends every connection, and with it every program that was started.
    pub(super) async fn shutdown(&self) {
        self.inner.hub.shutdown().await;
    }
}

/// Reports whether a server is available, or would be on first use.
fn is_healthy(status: &UpstreamStatus) -> bool {
    match status.state {
        UpstreamConnectionState::Ready | UpstreamConnectionState::Disabled => true,
        // It was connected before, and is idle.
        UpstreamConnectionState::Pending => status.starts > 0,
        _ => false,
    }
}

impl ItemOwnerLookup for Gateway {
    fn owner_of(&self, method: Method, name: &str) -> Option<(String, String)> {
        let (server, item) = self.inner.hub.owner_of(method, name)?;
        Some((server.to_string(), item))
    }

    fn access_rule(&self, caller: CallerIdentity<'_>, method: Method, name: &str) -> Option<String> {
        match self.inner.hub.access_to(caller, method, name)? {
            AccessDecision::Unrestricted => None,
            decision => Some(decision.to_string()),
        }
    }

    fn denying_rule(&self, tool: &str) -> Option<String> {
        self.plan().described.denying_rule(tool)
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("hub", &self.inner.hub).finish_non_exhaustive()
    }
}

/// Returns who the principal of the process is: over stdio the client, elsewhere the operator who uses the console beside the
/// users of the hub.
fn process_caller(anonymous: AnonymousClients) -> ProcessCaller {
    match anonymous {
        AnonymousClients::SingleUser => ProcessCaller::Alone,
        AnonymousClients::Isolated => ProcessCaller::Operator,
    }
}
