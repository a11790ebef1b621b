use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde_json::{Value, json};

use crate::admin::{AdminClient, AdminError, ServerState};
use crate::exit::{CliFailure, ExitReason};
use crate::terminal::escape_line;

/// Which hub is meant, if not the one that runs from the file.
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
    /// A socket was named, and no hub listens there; or somebody listens who does not answer as a hub does.
    pub(crate) fn find(&self, config: &Path) -> Result<Option<AdminClient>, CliFailure> {
        let Some(socket) = &self.admin_socket else { return Ok(AdminClient::find(config)?) };
        let hub = AdminClient::find_at(socket)?.ok_or_else(|| {
            CliFailure::new(ExitReason::Unreachable, format!("no hub is listening on {}", socket.display()))
                .hint("use the path given to `trunkline serve --admin-socket`")
        })?;
        Ok(Some(hub))
    }

    /// Tells the hub that runs from a file, if there is one, and asks how the server stands then.
    ///
    /// # Errors
    /// It does not do what it is told; the file is changed all the same, which is said.
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
        let told = change(&hub).and_then(|()| hub.status());
        let servers = told.map_err(|error| unheard(error.into()))?;
        let known = servers.into_iter().find(|known| known.name == server);
        Ok(known.map_or(HubUpdateResult::NoSuchServer, |known| HubUpdateResult::Server(Box::new(known))))
    }
}

/// Says that no hub of a file was found, and what to do. Where hubs have no socket, one may run all the same.
pub(super) fn hub_not_found(config: &Path) -> (String, &'static str) {
    let file = config.display();
    if cfg!(unix) {
        (format!("no hub is running from {file}"), "start one with `trunkline serve`")
    } else {
        (format!("cannot talk to a running hub on this system ({file})"), "edit the file; the hub reloads it")
    }
}

/// What a hub that runs from a file made of a change.
pub(super) enum HubUpdateResult {
    /// None runs, as far as anybody can tell.
    NotRunning,
    /// It has the server, and this is how it stands.
    Server(Box<ServerState>),
    /// It does not have the server.
    NoSuchServer,
}

impl HubUpdateResult {
    /// Says it in a sentence that goes on from what was done to the file.
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

/// Says how a server stands.
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
        Some(reason) => format!("{state}: {}", escape_line(reason)),
        None => state.to_owned(),
    }
}
