//! The hub of a configuration file, which is as the file says for as long as it runs.

mod own;
mod wiring;
mod within;

use std::convert::Infallible;
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_config::{ServerConfig, Start};
use trunkline_hub::{Applied, Hub, HubLimits, HubOptions, State, Status};
use trunkline_server::Limits;

pub(super) use self::own::OWN;
use self::own::Own;
use self::wiring::Wiring;
use super::ServeArgs;
use super::plan::{Plan, reach};
use crate::builtin::{self, Builtin};
use crate::exit::Failure;
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
}

impl Gateway {
    /// Makes the hub of a plan, without its servers. It has to be made within a runtime.
    ///
    /// # Errors
    /// The hub was started by itself.
    pub(super) fn new(args: &ServeArgs, plan: Plan) -> Result<Self, Failure> {
        let wiring = Arc::new(Wiring::new(within::told(plan.source.path())?));
        let limits = HubLimits { message_bytes: args.edge.max_message, ..HubLimits::default() };
        let mut options = HubOptions { connector: wiring.clone(), limits, ..HubOptions::default() };
        if let Some(names) = args.names.clone().or_else(|| plan.names.clone()) {
            options.names = names;
        }
        let inner = Inner {
            hub: Hub::new(options),
            wiring,
            builtin: args.builtin.clone(),
            limits: args.edge.limits(),
            plan: Mutex::new(Arc::new(plan)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    /// Returns what the hub is to be like.
    pub(super) fn plan(&self) -> Arc<Plan> {
        self.inner.plan.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prepares to make the hub like its plan, and returns what does so.
    ///
    /// # Errors
    /// What trunkline has itself does not fit together; nothing has happened.
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

    /// Makes these the servers, and says in the log what came of it.
    pub(super) async fn apply(&self, servers: Vec<ServerConfig>) -> Applied {
        let mut applied = self.inner.hub.set_servers(servers).await;
        for names in [&mut applied.added, &mut applied.removed, &mut applied.updated, &mut applied.unchanged]
        {
            names.retain(|name| *name != OWN);
        }
        for (server, reason) in &applied.failed {
            tracing::warn!(%server, "cannot be used: {}; it is tried again", visible_line(reason));
        }
        applied
    }

    /// Brings the servers up, and then follows the file. It never returns.
    pub(super) async fn keep(&self, servers: Vec<ServerConfig>) -> Infallible {
        self.apply(servers).await;
        for (server, reason) in self.missing() {
            tracing::error!(server, "not ready: it is required, and {}", visible_line(&reason));
        }
        std::future::pending().await
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

    /// Tells in short what is served.
    pub(super) fn summary(&self) -> String {
        let plan = self.plan();
        let servers = match plan.servers.len() {
            0 => None,
            1 => Some("1 server".to_owned()),
            several => Some(format!("{several} servers")),
        };
        let servers = servers.map(|count| format!("{count} of {}", plan.file.path().display()));
        let builtin = Some(builtin::names(&self.builtin(&plan))).filter(|names| !names.is_empty());
        let described = plan.described.names().into_iter().map(str::to_owned);
        let all: Vec<String> = servers.into_iter().chain(builtin).chain(described).collect();
        visible_line(&all.join(", ")).into_owned()
    }

    /// Lists the servers, each with what is started or connected to, and when.
    pub(super) fn listing(&self) -> String {
        let plan = self.plan();
        let width = plan.servers.iter().map(|server| server.name.as_str().chars().count()).max().unwrap_or(0);
        let mut listing = String::new();
        for server in &plan.servers {
            let (name, reach, when) = (server.name.as_str(), reach(server), when(server));
            // Writing to a string cannot fail.
            let _ = writeln!(
                listing,
                "  {name:width$}  {reach}  ({when})",
                name = visible_line(name),
                reach = visible_line(&reach)
            );
        }
        listing
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

fn when(server: &ServerConfig) -> &'static str {
    match (server.enabled, server.start) {
        (false, _) => "disabled",
        (true, Start::Eager) => "now",
        (true, Start::Lazy) => "when it is needed",
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("hub", &self.inner.hub).finish_non_exhaustive()
    }
}
