//! The web console of a gateway: the servers of its overview, and links to it.

use std::fmt;
use std::sync::{Arc, Weak};

#[cfg(unix)]
use trunkline_console::{Console, ConsoleRole};
use trunkline_console::{ConsoleServer, ServerReports};

use super::{Gateway, GatewayInner};
#[cfg(unix)]
use crate::admin::{AdminFailure, AdminFailureKind, AdminResponse};

/// The servers of a gateway, for as long as there is one: the console must not keep it.
pub(in crate::commands::serve) struct GatewayServers(Weak<GatewayInner>);

impl Gateway {
    /// Returns the servers for the overview of the console.
    pub(in crate::commands::serve) fn console_servers(&self) -> GatewayServers {
        GatewayServers(Arc::downgrade(&self.inner))
    }

    /// Makes a link that opens the console once. The owner of the admin socket is the operator.
    #[cfg(unix)]
    pub(super) fn make_console_link(&self, read_only: bool) -> AdminResponse {
        let role = if read_only { ConsoleRole::Viewer } else { ConsoleRole::Operator };
        match self.inner.console.get().map(|console: &Console| console.make_link(role)) {
            Some(Some(link)) => AdminResponse::ConsoleLink(link),
            served => {
                let what = match served {
                    None => "the running hub has no console (`--no-console`, or it serves stdio)",
                    Some(_) => {
                        "the running hub serves its console only on the loopback, or with `--admin` and `--auth`"
                    }
                };
                AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::Console, what: what.to_owned() })
            }
        }
    }
}

impl ServerReports for GatewayServers {
    fn servers(&self) -> Vec<ConsoleServer> {
        let Some(inner) = self.0.upgrade() else { return Vec::new() };
        let gateway = Gateway { inner };
        let known = gateway.server_statuses().into_iter().map(|status| ConsoleServer {
            name: status.name.to_string(),
            state: status.state.as_str().to_owned(),
            reason: status.reason,
            revision: status.revision.map(|revision| revision.to_string()),
            transport: status.transport.filter(|name| !name.is_empty()).map(str::to_owned),
            starts: status.starts,
            tools: status.tools,
        });
        let plan = gateway.plan();
        let excluded = plan.excluded.iter().map(|server| ConsoleServer {
            name: server.name.clone(),
            state: server.cause.state().to_owned(),
            reason: Some(server.reason.clone()),
            ..ConsoleServer::default()
        });
        known.chain(excluded).collect()
    }
}

impl fmt::Debug for GatewayServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayServers").finish_non_exhaustive()
    }
}
