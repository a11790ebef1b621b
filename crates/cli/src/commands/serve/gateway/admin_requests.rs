//! What can be done to a hub while it runs.

use std::time::Duration;

use trunkline_config::ServerName;
use trunkline_hub::{ApplyReport, ManageError, NameCollision, ServerSwitch, ToggleOutcome, UpstreamStatus};

use super::session_requests::SessionFailure;
use super::{Gateway, OWN_SERVER_NAME};
use crate::admin::{
    self, AdminFailure, AdminFailureKind, AdminRequest, AdminResponse, HubReport, ServerState,
};
use crate::commands::info::capability_summary;
use crate::commands::serve::excluded_server::ExcludedServer;

impl Gateway {
    /// Handles a request from the admin socket.
    pub(super) async fn handle_request(&self, request: AdminRequest) -> AdminResponse {
        let hub = self.hub();
        let done = |outcome: Result<(), ManageError>| {
            outcome.map_or_else(failure_response, |()| AdminResponse::Done)
        };
        if let Some(server) = server_name(&request).filter(|server| *server == OWN_SERVER_NAME) {
            return failure_response(ManageError::NoSuchServer(server.to_owned()));
        }
        if let Some(response) = self.excluded_response(&request) {
            return response;
        }
        match request {
            AdminRequest::Status => AdminResponse::Status(self.report()),
            AdminRequest::Enable { server } => toggle_response(hub.toggle(&server, ServerSwitch::On)),
            AdminRequest::Disable { server } => toggle_response(hub.toggle(&server, ServerSwitch::Off)),
            AdminRequest::Connect { server } => done(hub.connect(&server).await),
            AdminRequest::Disconnect { server } => done(hub.disconnect(&server).await),
            AdminRequest::Reconnect { server } => done(hub.reconnect(&server).await),
            AdminRequest::Ping { server } => hub
                .ping(&server)
                .await
                .map_or_else(failure_response, |took| AdminResponse::Pinged(took.as_secs_f64())),
            AdminRequest::Reload => match self.reload().await {
                Ok(applied) => AdminResponse::Applied(reload_summary(applied, &self.plan().excluded)),
                Err(failure) => {
                    let what = failure.to_string();
                    AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::Configuration, what })
                }
            },
            AdminRequest::Events => {
                let what = "events are streamed by the socket itself".to_owned();
                AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::Request, what })
            }
            AdminRequest::Sessions => {
                let listed = self.list_sessions(MAX_SESSIONS).await;
                listed.map_or_else(session_failure, AdminResponse::Sessions)
            }
            AdminRequest::EndSession { session } => {
                self.end_session(&session).await.map_or_else(session_failure, |()| AdminResponse::Done)
            }
            AdminRequest::Login { server } => self.make_login_link(&server).await,
            AdminRequest::ConsoleLink { read_only } => self.make_console_link(read_only),
            AdminRequest::AwaitLogin { link } => self.await_login(&link).await,
            AdminRequest::ReloadTokens { server } => done(self.reload_tokens(&server).await),
            AdminRequest::RevokeUser { user, server } => self.revoke_user(&user, server.as_deref()).await,
        }
    }

    /// Answers a request about a server that the hub leaves out.
    fn excluded_response(&self, request: &AdminRequest) -> Option<AdminResponse> {
        let plan = self.plan();
        let server = plan.excluded(server_name(request)?)?;
        if matches!(request, AdminRequest::Disable { .. }) {
            return Some(AdminResponse::Switched(false));
        }
        let what = format!("server `{}` is unavailable: {}", server.name, server.reason);
        Some(AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::Configuration, what }))
    }

    fn report(&self) -> HubReport {
        let plan = self.plan();
        let servers = self.server_statuses().into_iter().map(|status| {
            let config = plan.servers.iter().find(|server| server.name == status.name);
            let output = self.hub().process_output(status.name.as_str()).ok().flatten();
            let reach = config.map(|config| config.location.to_string()).unwrap_or_default();
            ServerState { output, ..server_state(status, reach) }
        });
        let mut servers: Vec<ServerState> = servers.chain(plan.excluded.iter().map(excluded_state)).collect();
        let order = plan.file.server_names();
        servers.sort_by_key(|server| order.iter().position(|name| *name == server.name));
        let path = plan.file.path();
        HubReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            url: self.inner.url.get().cloned(),
            config: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
            servers,
            collisions: describe_collisions(&self.hub().collisions()),
        }
    }
}

/// The most sessions in one response: an answer has at most 16 MiB.
const MAX_SESSIONS: usize = 10_000;

fn session_failure(SessionFailure { kind, what }: SessionFailure) -> AdminResponse {
    AdminResponse::Failed(AdminFailure { kind, what })
}

/// The most collisions that are described.
const MAX_COLLISIONS: usize = 50;

/// Describes collisions, and counts the omitted ones.
fn describe_collisions(collisions: &[NameCollision]) -> Vec<String> {
    let more = collisions.len().saturating_sub(MAX_COLLISIONS);
    let more = (more > 0).then(|| format!("and {more} more name and URI collisions"));
    collisions.iter().take(MAX_COLLISIONS).map(ToString::to_string).chain(more).collect()
}

fn server_name(request: &AdminRequest) -> Option<&str> {
    match request {
        AdminRequest::Status
        | AdminRequest::Events
        | AdminRequest::Reload
        | AdminRequest::Sessions
        | AdminRequest::EndSession { .. }
        | AdminRequest::ConsoleLink { .. }
        | AdminRequest::AwaitLogin { .. } => None,
        AdminRequest::RevokeUser { server, .. } => server.as_deref(),
        AdminRequest::Enable { server }
        | AdminRequest::Disable { server }
        | AdminRequest::Connect { server }
        | AdminRequest::Disconnect { server }
        | AdminRequest::Reconnect { server }
        | AdminRequest::Ping { server }
        | AdminRequest::Login { server }
        | AdminRequest::ReloadTokens { server } => Some(server),
    }
}

fn toggle_response(outcome: Result<ToggleOutcome, ManageError>) -> AdminResponse {
    outcome
        .map_or_else(failure_response, |toggled| AdminResponse::Switched(toggled == ToggleOutcome::Changed))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what a failed outcome is mapped by")]
pub(super) fn failure_response(error: ManageError) -> AdminResponse {
    let kind = match error {
        ManageError::NoSuchServer(_) => AdminFailureKind::NoSuchServer,
        _ => AdminFailureKind::Unavailable,
    };
    AdminResponse::Failed(AdminFailure { kind, what: error.to_string() })
}

fn server_state(status: UpstreamStatus, reach: String) -> ServerState {
    let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    ServerState {
        name: status.name.to_string(),
        state: status.state.to_string(),
        reason: status.reason,
        retry_in_ms: status.retry_in.map(millis),
        required: status.required,
        reach,
        revision: status.revision.map(|revision| revision.to_string()),
        identity: status.identity.map(|identity| format!("{} {}", identity.name, identity.version)),
        transport: status.transport.map(str::to_owned),
        capabilities: status.capabilities.as_ref().map(capability_summary),
        output: None,
        tools: status.tools,
        prompts: status.prompts,
        resources: status.resources,
        left_out: status.skipped,
        repaired: status.repaired,
        connections: status.connections,
        calls: status.calls,
        starts: status.starts,
    }
}

fn excluded_state(server: &ExcludedServer) -> ServerState {
    ServerState {
        name: server.name.clone(),
        state: server.cause.state().to_owned(),
        reason: Some(server.reason.clone()),
        required: server.required,
        reach: server.location.clone(),
        ..ServerState::default()
    }
}

fn reload_summary(applied: ApplyReport, excluded: &[ExcludedServer]) -> admin::ReloadSummary {
    let names = |names: Vec<ServerName>| names.iter().map(ToString::to_string).collect();
    let failed = applied.failed.into_iter().map(|(server, reason)| (server.to_string(), reason));
    let failed = failed.chain(excluded.iter().map(|server| (server.name.clone(), server.reason.clone())));
    admin::ReloadSummary {
        added: names(applied.added),
        removed: names(applied.removed),
        updated: names(applied.updated),
        unchanged: names(applied.unchanged),
        failed: failed.collect(),
    }
}
