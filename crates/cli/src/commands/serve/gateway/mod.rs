//! The hub of a configuration file, which is as the file says for as long as it runs.

mod admin;
mod follow;
mod keep;
mod listing;
#[cfg(unix)]
mod manage;
mod own;
mod reload;
mod wiring;
mod within;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use trunkline_config::ServerConfig;
use trunkline_hub::{Applied, Hub, HubLimits, HubOptions, State, Status};
use trunkline_server::Limits;
use trunkline_server::protocol::Method;

use self::admin::Socket;
use self::follow::Hangups;
pub(super) use self::keep::begin;
pub(super) use self::own::OWN;
use self::own::Own;
use self::wiring::Wiring;
use super::ServeArgs;
use super::plan::Plan;
use crate::audit::{Audit, Index};
use crate::builtin::Builtin;
use crate::exit::{Exit, Failure};
use crate::state_folder::listings_of_config;
use crate::terminal::visible_line;

/// A hub that follows a file. Clones are the same.
#[derive(Clone)]
pub(crate) struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    hub: Hub,
    wiring: Arc<Wiring>,
    /// The built-in servers that were asked for.
    builtin: Vec<Builtin>,
    limits: Limits,
    plan: Mutex<Arc<Plan>>,
    /// Held by whoever reads the file and makes the hub like it.
    turn: tokio::sync::Mutex<()>,
    /// What was wrong with the file when it was last read again.
    problem: Mutex<Option<String>>,
    /// Taken by whoever listens to them.
    hangups: Mutex<Option<Hangups>>,
    /// Where those who run the hub talk to it.
    socket: Option<Socket>,
    /// Where the hub is served, if that is an address.
    url: OnceLock<String>,
    /// Where calls are noted down, if anywhere.
    audit: OnceLock<Audit>,
    /// Whether standard error carries JSON lines and so nothing else.
    stderr_is_json: bool,
}

impl Gateway {
    /// Makes the hub of a plan, without its servers. It has to be made within a runtime.
    ///
    /// # Errors
    /// The hub was started by itself, or cannot listen where those who run it should reach it.
    pub(super) fn new(args: &ServeArgs, plan: Plan) -> Result<Self, Failure> {
        let wiring = Arc::new(Wiring::new(within::told(plan.source.path())?));
        let mut limits = HubLimits { message_bytes: args.edge.max_message, ..HubLimits::default() };
        if let Some(list_wait) = args.list_wait.or(plan.serve.list_wait) {
            limits.first_lists_within = list_wait;
        }
        let mut options = HubOptions {
            connector: wiring.clone(),
            anonymous: args.place().anonymous_clients(&args.edge),
            limits,
            catalogue_file: listings_of_config(plan.source.path()),
            ..HubOptions::default()
        };
        if let Some(names) = args.names.clone().or_else(|| plan.serve.names.clone()) {
            options.names = names;
        }
        let hangups = Hangups::install()
            .map_err(|error| Failure::new(Exit::Failed, format!("signals cannot be listened to: {error}")))?;
        let inner = Inner {
            hub: Hub::new(options),
            wiring,
            builtin: args.builtin.clone(),
            limits: args.edge.limits(),
            turn: tokio::sync::Mutex::default(),
            problem: Mutex::default(),
            hangups: Mutex::new(Some(hangups)),
            socket: Socket::open(args.admin_socket.as_deref(), plan.source.path())?,
            url: OnceLock::new(),
            audit: OnceLock::new(),
            stderr_is_json: args.edge.log.stderr_is_json(),
            plan: Mutex::new(Arc::new(plan)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    /// Returns what the hub is to be like.
    pub(super) fn plan(&self) -> Arc<Plan> {
        self.inner.plan.lock().clone()
    }

    fn set_plan(&self, plan: Plan) {
        *self.inner.plan.lock() = Arc::new(plan);
    }

    /// Notes where the hub is served.
    pub(super) fn set_url(&self, url: String, address: SocketAddr) {
        self.inner.wiring.set_address(address);
        // It is served at one address only.
        let _ = self.inner.url.set(url);
    }

    /// Notes where calls are noted down.
    pub(super) fn set_audit(&self, audit: Audit) {
        // There is one for as long as the hub.
        let _ = self.inner.audit.set(audit);
    }

    /// Makes what trunkline has itself as a plan says, and returns all servers of the hub.
    ///
    /// # Errors
    /// What trunkline has itself does not fit together; nothing has changed.
    pub(super) fn prepare(&self, plan: &Plan) -> Result<Vec<ServerConfig>, Failure> {
        let own = Own::of(&self.builtin(plan), &plan.described, self.inner.limits.clone())?;
        let mut slot = self.inner.wiring.own();
        let stays = matches!((&*slot, &own), (Some(old), Some(new)) if old.is_like(new));
        if !stays {
            *slot = own;
        }
        let own = slot.as_ref().and_then(Own::config);
        Ok(own.into_iter().chain(plan.servers.iter().cloned()).collect())
    }

    /// Returns the built-in servers to serve: who has anything else wants that, and they are there for who has nothing yet.
    fn builtin(&self, plan: &Plan) -> Vec<Builtin> {
        let nothing = self.inner.builtin.is_empty() && plan.is_empty();
        if nothing { Builtin::ALL.to_vec() } else { self.inner.builtin.clone() }
    }

    /// Makes these the servers, and says in the log which of them cannot be used.
    async fn apply(&self, servers: Vec<ServerConfig>) -> Applied {
        let mut applied = self.inner.hub.set_servers(servers).await;
        let lists = [&mut applied.added, &mut applied.removed, &mut applied.updated, &mut applied.unchanged];
        for names in lists {
            names.retain(|name| *name != OWN);
        }
        for (server, reason) in &applied.failed {
            tracing::warn!(%server, "cannot be used: {}; it is tried again", visible_line(reason));
        }
        applied
    }

    /// Tells why the hub is not ready: which servers it should not be without, and what is the matter with them.
    pub(super) fn missing(&self) -> Vec<(String, String)> {
        let plan = self.plan();
        let required = plan.servers.iter().filter(|server| server.required && server.enabled);
        let missing = required.filter_map(|server| {
            let reason = match self.inner.hub.status_of(server.name.as_str()) {
                Ok(status) if is_well(&status) => return None,
                Ok(status) => status.reason.unwrap_or_else(|| format!("it is {}", status.state)),
                Err(_) => "it is not started yet".to_owned(),
            };
            Some((server.name.to_string(), reason))
        });
        missing.collect()
    }

    /// Returns how every server of the file stands.
    pub(super) fn servers(&self) -> Vec<Status> {
        self.inner.hub.status().into_iter().filter(|status| status.name != OWN).collect()
    }

    /// Lets nobody who runs the hub find it any more.
    pub(super) fn leave(&self) {
        if let Some(socket) = &self.inner.socket {
            socket.take_away();
        }
    }

    /// Ends every connection, and with it every program that was started.
    pub(super) async fn shutdown(&self) {
        self.inner.hub.shutdown().await;
    }
}

/// Reports whether a server is there, or would be if anybody needed it.
fn is_well(status: &Status) -> bool {
    match status.state {
        State::Ready | State::Disabled => true,
        // It was there, and rests.
        State::Pending => status.starts > 0,
        _ => false,
    }
}

impl Index for Gateway {
    fn owner_of(&self, method: Method, name: &str) -> Option<(String, String)> {
        let (server, item) = self.inner.hub.owner_of(method, name)?;
        Some((server.to_string(), item))
    }

    fn rule_against(&self, tool: &str) -> Option<String> {
        self.plan().described.rule_against(tool)
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("hub", &self.inner.hub).finish_non_exhaustive()
    }
}
