//! What the console can do to a gateway.

use std::time::SystemTime;

use trunkline_console::{
    ClientLogin, ClientSession, ClientSessions, ControlError, HubControls, ServerAction,
};
use trunkline_hub::{Hub, LoginSummary, ManageError, ServerSwitch};
use trunkline_server::BoxFuture;

use super::console_servers::GatewayServers;
use super::session_requests::SessionFailure;
use super::{Gateway, OWN_SERVER_NAME};
use crate::admin::{AdminFailureKind, SessionState};

impl HubControls for GatewayServers {
    fn change_server<'a>(
        &'a self,
        name: &'a str,
        action: ServerAction,
    ) -> BoxFuture<'a, Result<(), ControlError>> {
        Box::pin(async move {
            let gateway = self.gateway()?;
            if name == OWN_SERVER_NAME {
                return Err(control_error(ManageError::NoSuchServer(name.to_owned())));
            }
            if let Some(server) = gateway.plan().excluded(name) {
                let what = format!("server `{name}` is unavailable: {}", server.reason);
                return Err(ControlError::Failed(what));
            }
            // In a task of its own, so that a page that is closed does not leave it half done.
            let changing = tokio::spawn(change(gateway.hub().clone(), name.to_owned(), action));
            let done = changing.await.map_err(|error| ControlError::Failed(error.to_string()))?;
            if done.is_ok() {
                tracing::info!(server = name, ?action, "the console changed a server");
            }
            done.map_err(control_error)
        })
    }

    fn sessions(&self, most: usize) -> BoxFuture<'_, Result<ClientSessions, ControlError>> {
        Box::pin(async move {
            let gateway = self.gateway()?;
            let report = gateway.list_sessions(most).await.map_err(session_error)?;
            let (logins, has_more_logins) = gateway
                .hub()
                .stored_logins(most)
                .await
                .map_err(|error| ControlError::Failed(error.to_string()))?;
            let now = SystemTime::now();
            Ok(ClientSessions {
                store: report.store,
                sessions: report.sessions.into_iter().map(session).collect(),
                is_truncated: report.is_truncated,
                logins: logins.into_iter().map(|stored| login(stored, now)).collect(),
                has_more_logins,
            })
        })
    }

    fn end_session<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), ControlError>> {
        Box::pin(async move {
            self.gateway()?.end_session(id).await.map_err(session_error)?;
            tracing::info!(session = id, "the console ended a session");
            Ok(())
        })
    }
}

impl GatewayServers {
    fn gateway(&self) -> Result<Gateway, ControlError> {
        self.upgrade().ok_or_else(|| ControlError::Failed("the hub is shutting down".to_owned()))
    }
}

async fn change(hub: Hub, name: String, action: ServerAction) -> Result<(), ManageError> {
    match action {
        ServerAction::Reconnect => hub.reconnect(&name).await,
        ServerAction::Enable => hub.toggle(&name, ServerSwitch::On).map(|_| ()),
        ServerAction::Disable => hub.toggle(&name, ServerSwitch::Off).map(|_| ()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what a failed outcome is mapped by")]
fn control_error(error: ManageError) -> ControlError {
    match error {
        ManageError::NoSuchServer(_) => ControlError::NotFound(error.to_string()),
        _ => ControlError::Failed(error.to_string()),
    }
}

fn session_error(SessionFailure { kind, what }: SessionFailure) -> ControlError {
    match kind {
        AdminFailureKind::NoSuchSession => ControlError::NotFound(what),
        _ => ControlError::Failed(what),
    }
}

fn session(state: SessionState) -> ClientSession {
    ClientSession {
        id: state.id,
        principal: state.principal,
        client: state.client,
        revision: state.revision,
        transport: state.transport,
        log_level: state.log_level,
        subscriptions: state.subscriptions,
        age_s: state.age_s,
        idle_s: state.idle_s,
        is_busy: state.busy,
    }
}

fn login(stored: LoginSummary, now: SystemTime) -> ClientLogin {
    let servers = match stored.servers.is_empty() {
        true => vec![stored.server_origin],
        false => stored.servers.iter().map(ToString::to_string).collect(),
    };
    ClientLogin {
        user: stored.user,
        display_name: stored.display_name,
        servers,
        issuer: stored.issuer,
        scopes: stored.scopes,
        expires_in_s: stored.expires_at.map(|at| seconds_until(at, now)),
        is_renewable: stored.is_renewable,
    }
}

/// Returns the seconds until a time; negative if it is over.
fn seconds_until(at: SystemTime, now: SystemTime) -> i64 {
    let seconds = |found: std::time::Duration| i64::try_from(found.as_secs()).unwrap_or(i64::MAX);
    match at.duration_since(now) {
        Ok(left) => seconds(left),
        Err(over) => -seconds(over.duration()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn login_that_has_expired_has_negative_seconds() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        for (at, expected) in [(1_060, 60), (1_000, 0), (400, -600)] {
            assert_eq!(seconds_until(SystemTime::UNIX_EPOCH + Duration::from_secs(at), now), expected);
        }
    }
}
