//! The web console of a gateway: its servers, and links to it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use trunkline_console::limits::{MAX_DESCRIPTION_CHARS, MAX_LARGEST_TOOLS, MAX_LISTED_ITEMS};
#[cfg(unix)]
use trunkline_console::{Console, ConsoleRole};
use trunkline_console::{ConsoleItem, ConsoleServer, ConsoleServerCost, ConsoleServerDetails, ServerReports};
use trunkline_hub::{CallFigureReport, OfferedItem, UpstreamStatus};

use super::{Gateway, GatewayInner, OWN_SERVER_NAME};
#[cfg(unix)]
use crate::admin::{AdminFailure, AdminFailureKind, AdminResponse};
use crate::commands::info::capability_summary;
use crate::commands::serve::excluded_server::ExcludedServer;

/// The servers of a gateway, for as long as there is one: the console must not keep it.
pub(in crate::commands::serve) struct GatewayServers(Weak<GatewayInner>);

impl Gateway {
    /// Returns the servers for the console.
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

impl GatewayServers {
    /// Returns the gateway, if it still runs.
    pub(super) fn upgrade(&self) -> Option<Gateway> {
        Some(Gateway { inner: self.0.upgrade()? })
    }
}

impl ServerReports for GatewayServers {
    fn servers(&self) -> Vec<ConsoleServer> {
        let Some(gateway) = self.upgrade() else { return Vec::new() };
        let known = gateway.server_statuses().into_iter().map(known_server);
        let plan = gateway.plan();
        known.chain(plan.excluded.iter().map(excluded_server)).collect()
    }

    fn server(&self, name: &str) -> Option<ConsoleServerDetails> {
        let gateway = self.upgrade().filter(|_| name != OWN_SERVER_NAME)?;
        let plan = gateway.plan();
        if let Some(server) = plan.excluded(name) {
            let (server, reach) = (excluded_server(server), server.location.clone());
            return Some(ConsoleServerDetails { server, reach, ..ConsoleServerDetails::default() });
        }
        let hub = gateway.hub();
        let status = hub.status_of(name).ok()?;
        let items = hub.offered_items(name).ok()?;
        let config = plan.servers.iter().find(|server| server.name == status.name);
        let lists = [items.tools, items.prompts, items.resources];
        let more_items = lists.iter().map(|list| list.len().saturating_sub(MAX_LISTED_ITEMS)).sum();
        let [offered_tools, offered_prompts, offered_resources] =
            lists.map(|list| list.into_iter().take(MAX_LISTED_ITEMS).map(item).collect());
        Some(ConsoleServerDetails {
            reach: config.map(|config| config.location.to_string()).unwrap_or_default(),
            identity: status.identity.as_ref().map(|known| format!("{} {}", known.name, known.version)),
            capabilities: status.capabilities.as_ref().map(capability_summary),
            instructions: items.instructions,
            output: hub.process_output(name).ok().flatten(),
            left_out: status.skipped.clone(),
            repaired: status.repaired.clone(),
            server: known_server(status),
            offered_tools,
            offered_prompts,
            offered_resources,
            more_items,
        })
    }

    fn call_figures(&self, after: Option<u32>) -> Option<CallFigureReport> {
        let mut report = self.upgrade()?.hub().call_figures(after);
        report.servers.retain(|(name, _)| *name != OWN_SERVER_NAME);
        Some(report)
    }

    fn costs(&self) -> Vec<ConsoleServerCost> {
        let Some(gateway) = self.upgrade() else { return Vec::new() };
        let hub = gateway.hub();
        let mut costs: BTreeMap<String, ConsoleServerCost> = BTreeMap::new();
        for (server, tool) in hub.offered_tools() {
            let cost = costs.entry(server).or_default();
            cost.tools += 1;
            cost.definition_bytes += tool.definition_bytes;
            cost.largest.push(ConsoleItem { description: None, ..item(tool) });
        }
        for (server, figures) in hub.call_figures(None).servers {
            let cost = costs.entry(server.to_string()).or_default();
            (cost.calls, cost.result_bytes) = (figures.calls, figures.result_bytes);
        }
        let named = costs.into_iter().map(|(name, mut cost)| {
            cost.largest.sort_by_key(|tool| std::cmp::Reverse(tool.bytes));
            cost.largest.truncate(MAX_LARGEST_TOOLS);
            ConsoleServerCost { name, ..cost }
        });
        named.collect()
    }
}

impl fmt::Debug for GatewayServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayServers").finish_non_exhaustive()
    }
}

fn known_server(status: UpstreamStatus) -> ConsoleServer {
    let millis = |wait: std::time::Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    ConsoleServer {
        name: status.name.to_string(),
        state: status.state.as_str().to_owned(),
        reason: status.reason,
        revision: status.revision.map(|revision| revision.to_string()),
        transport: status.transport.filter(|name| !name.is_empty()).map(str::to_owned),
        starts: status.starts,
        tools: status.tools,
        connections: status.connections,
        running: status.calls,
        waiting: status.waiting,
        retry_in_ms: status.retry_in.map(millis),
        is_excluded: false,
    }
}

fn excluded_server(server: &ExcludedServer) -> ConsoleServer {
    ConsoleServer {
        name: server.name.clone(),
        state: server.cause.state().to_owned(),
        reason: Some(server.reason.clone()),
        is_excluded: true,
        ..ConsoleServer::default()
    }
}

fn item(item: OfferedItem) -> ConsoleItem {
    let shorten = |text: String| text.chars().take(MAX_DESCRIPTION_CHARS).collect();
    ConsoleItem {
        name: item.name,
        upstream_name: item.upstream_name,
        title: item.title.map(shorten),
        description: item.description.map(shorten),
        bytes: item.definition_bytes,
    }
}
