use std::path::Path;

use serde_json::{Value, json};

use crate::admin::{AdminError, Hub, ServerState};
use crate::exit::Failure;
use crate::terminal::visible_line;

/// What a hub that runs from a file made of a change.
pub(super) enum Heard {
    /// None runs.
    Nobody,
    /// It has the server, and this is how it stands.
    Has(Box<ServerState>),
    /// It does not have the server.
    HasNot,
}

/// Tells the hub that runs from a file, if there is one, and asks how the server stands then.
///
/// # Errors
/// It does not do what it is told; the file is changed all the same, which is said.
pub(super) fn tell(
    file: &Path,
    server: &str,
    change: impl FnOnce(&Hub) -> Result<(), AdminError>,
) -> Result<Heard, Failure> {
    let Some(hub) = Hub::find(file) else { return Ok(Heard::Nobody) };
    let told = change(&hub).and_then(|()| hub.status());
    let servers = told.map_err(|error| {
        Failure::from(error).or_hint(format!("{} is changed, and the running hub is not", file.display()))
    })?;
    Ok(servers
        .into_iter()
        .find(|known| known.name == server)
        .map_or(Heard::HasNot, |known| Heard::Has(Box::new(known))))
}

impl Heard {
    /// Says it in a sentence that goes on from what was done to the file.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Nobody => "no hub runs from it".to_owned(),
            Self::Has(server) => format!("the running hub has it: {}", standing(server)),
            Self::HasNot => "the running hub no longer has it".to_owned(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Nobody => Value::Null,
            Self::Has(server) => json!(server),
            Self::HasNot => json!({ "state": "removed" }),
        }
    }
}

/// Says how a server stands.
pub(super) fn standing(server: &ServerState) -> String {
    let state = match &*server.state {
        "ready" => {
            let tools = if server.tools == 1 { "tool" } else { "tools" };
            return format!("ready, {} {tools}", server.tools);
        }
        "pending" => "it is started when it is needed",
        "disabled" => "switched off",
        other => other,
    };
    match &server.reason {
        Some(reason) => format!("{state}: {}", visible_line(reason)),
        None => state.to_owned(),
    }
}
