use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde_json::{Value, json};

use crate::admin::{AdminClient, AdminError, ServerState};
use crate::exit::{CliFailure, ExitReason};
use crate::terminal::escape_line;

/// The hub to manage, unless it is the one of the file.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HubArgs {
    /// Admin socket of the hub, if not the default
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    admin_socket: Option<PathBuf>,
}

impl HubArgs {
    /// Finds the hub that runs from a file, if one does.
    ///
    /// # Errors
    /// A socket was given and no hub listens there, or its response is malformed.
    pub(crate) fn find(&self, config: &Path) -> Result<Option<AdminClient>, CliFailure> {
        let Some(socket) = &self.admin_socket else { return Ok(AdminClient::find(config)?) };
        let hub = AdminClient::find_at(socket)?.ok_or_else(|| {
            CliFailure::new(ExitReason::Unreachable, format!("no hub is listening on {}", socket.display()))
                .hint("use the path given to `trunkline serve --admin-socket`")
        })?;
        Ok(Some(hub))
    }

    /// Applies a change to the hub that runs from a file, if there is one, and returns the resulting state of the server.
    ///
    /// # Errors
    /// The hub rejects the change; the file is changed all the same, which the hint reports.
    pub(super) fn apply_to_running(
        &self,
        config: &Path,
        server: &str,
        change: impl FnOnce(&AdminClient) -> Result<(), AdminError>,
    ) -> Result<HubUpdateResult, CliFailure> {
        let unheard = |failure: CliFailure| {
            failure.or_hint(format!("{} was changed, but the running hub was not", config.display()))
        };
        let Some(hub) = self.find(config).map_err(unheard)? else { return Ok(HubUpdateResult::NotRunning) };
        let status = change(&hub).and_then(|()| hub.status());
        let servers = status.map_err(|error| unheard(error.into()))?;
        let known = servers.into_iter().find(|known| known.name == server);
        Ok(known.map_or(HubUpdateResult::NoSuchServer, |known| HubUpdateResult::Server(Box::new(known))))
    }
}

/// Describes that no hub of a file was found, with a hint. Where hubs have no socket, one may run all the same.
pub(super) fn hub_not_found(config: &Path) -> (String, &'static str) {
    let file = config.display();
    if cfg!(unix) {
        (format!("no hub is running from {file}"), "start one with `trunkline serve`")
    } else {
        (format!("cannot talk to a running hub on this system ({file})"), "edit the file; the hub reloads it")
    }
}

/// How a running hub reacted to a change.
pub(super) enum HubUpdateResult {
    /// No hub was found.
    NotRunning,
    /// The hub has the server, in this state.
    Server(Box<ServerState>),
    /// It does not have the server.
    NoSuchServer,
}

impl HubUpdateResult {
    /// Formats the result as the end of a sentence about the file.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::NotRunning if cfg!(unix) => "no hub is running from it".to_owned(),
            Self::NotRunning => "a running hub reloads it".to_owned(),
            Self::Server(server) if server.state == "disabled" => {
                "the running hub now has it disabled".to_owned()
            }
            Self::Server(server) => format!("the running hub has it: {}", state_text(server)),
            Self::NoSuchServer => "the running hub no longer has it".to_owned(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::NotRunning => Value::Null,
            Self::Server(server) => json!(server),
            Self::NoSuchServer => json!({ "state": "removed" }),
        }
    }
}

/// Describes the state of a server.
pub(super) fn state_text(server: &ServerState) -> String {
    let state = match &*server.state {
        "ready" => {
            let tools = if server.tools == 1 { "tool" } else { "tools" };
            return format!("ready, {} {tools}", server.tools);
        }
        "pending" => "pending (starts on first use)",
        other => other,
    };
    match &server.reason {
        Some(reason) => format!("{state}: {}", escape_line(reason.lines().next().unwrap_or_default())),
        None => state.to_owned(),
    }
}
