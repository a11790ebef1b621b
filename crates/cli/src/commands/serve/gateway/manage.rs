//! What can be done to a hub while it runs.

use std::time::Duration;

use trunkline_config::ServerName;
use trunkline_hub::{Applied, Collision, ManageError, Status, Switch, Toggled};

use super::{Gateway, OWN};
use crate::admin::{self, Answer, Problem, ProblemKind, Report, Request, ServerState};

impl Gateway {
    /// Does what somebody who runs the hub asks for.
    pub(super) async fn manage(&self, request: Request) -> Answer {
        let hub = self.hub();
        let done = |outcome: Result<(), ManageError>| outcome.map_or_else(failed, |()| Answer::Done);
        if let Some(server) = server_of(&request).filter(|server| *server == OWN) {
            return failed(ManageError::NoSuchServer(server.to_owned()));
        }
        match request {
            Request::Status => Answer::Status(self.report()),
            Request::Enable { server } => switched(hub.toggle(&server, Switch::On)),
            Request::Disable { server } => switched(hub.toggle(&server, Switch::Off)),
            Request::Connect { server } => done(hub.connect(&server).await),
            Request::Disconnect { server } => done(hub.disconnect(&server).await),
            Request::Reconnect { server } => done(hub.reconnect(&server).await),
            Request::Ping { server } => {
                hub.ping(&server).await.map_or_else(failed, |took| Answer::Pinged(took.as_secs_f64()))
            }
            Request::Reload => match self.reload().await {
                Ok(applied) => Answer::Applied(told(applied)),
                Err(failure) => {
                    let what = failure.to_string();
                    Answer::Failed(Problem { kind: ProblemKind::Configuration, what })
                }
            },
        }
    }

    fn report(&self) -> Report {
        let plan = self.plan();
        let servers = self.servers().into_iter().map(|status| {
            let config = plan.servers.iter().find(|server| server.name == status.name);
            state(status, config.map(|config| config.reach.to_string()).unwrap_or_default())
        });
        let path = plan.file.path();
        Report {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            url: self.inner.url.get().cloned(),
            config: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
            servers: servers.collect(),
            collisions: described(&self.hub().collisions()),
        }
    }
}

/// The most collisions that are described.
const MOST_COLLISIONS: usize = 50;

/// Describes collisions, and says how many more there are.
fn described(collisions: &[Collision]) -> Vec<String> {
    let more = collisions.len().saturating_sub(MOST_COLLISIONS);
    let more = (more > 0).then(|| format!("and {more} more names and addresses that several servers claim"));
    collisions.iter().take(MOST_COLLISIONS).map(ToString::to_string).chain(more).collect()
}

fn server_of(request: &Request) -> Option<&str> {
    match request {
        Request::Status | Request::Reload => None,
        Request::Enable { server }
        | Request::Disable { server }
        | Request::Connect { server }
        | Request::Disconnect { server }
        | Request::Reconnect { server }
        | Request::Ping { server } => Some(server),
    }
}

fn switched(outcome: Result<Toggled, ManageError>) -> Answer {
    outcome.map_or_else(failed, |toggled| Answer::Switched(toggled == Toggled::Changed))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what a failed outcome is mapped by")]
fn failed(error: ManageError) -> Answer {
    let kind = match error {
        ManageError::NoSuchServer(_) => ProblemKind::NoSuchServer,
        _ => ProblemKind::Unavailable,
    };
    Answer::Failed(Problem { kind, what: error.to_string() })
}

fn state(status: Status, reach: String) -> ServerState {
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
        tools: status.tools,
        prompts: status.prompts,
        resources: status.resources,
        left_out: status.left_out,
        repaired: status.repaired,
        connections: status.connections,
        calls: status.calls,
        starts: status.starts,
    }
}

fn told(applied: Applied) -> admin::Applied {
    let names = |names: Vec<ServerName>| names.iter().map(ToString::to_string).collect();
    let failed = applied.failed.into_iter().map(|(server, reason)| (server.to_string(), reason));
    admin::Applied {
        added: names(applied.added),
        removed: names(applied.removed),
        updated: names(applied.updated),
        unchanged: names(applied.unchanged),
        failed: failed.collect(),
    }
}
