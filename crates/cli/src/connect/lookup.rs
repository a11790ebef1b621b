use std::path::Path;

use trunkline_config::find::{self, FoundServer, LookupError};

use crate::config_failure::config_failure;
use crate::exit::CliFailure;
use crate::schema::did_you_mean;

/// Finds a server by its name: in the file that was named, or else in the one of this folder and in those of the clients
/// of the user.
///
/// # Errors
/// No file has it, or its configuration is invalid.
pub(super) fn look_up(name: &str, file: Option<&Path>) -> Result<FoundServer, CliFailure> {
    find::look_up(name, file).map_err(|error| match &error {
        LookupError::Config(error) => config_failure(error.problems()),
        LookupError::Unknown { name, known } => unknown_server(name, known),
        _ => CliFailure::configuration(error),
    })
}

fn unknown_server(name: &str, known: &[String]) -> CliFailure {
    let failure = CliFailure::configuration(format!("no server named `{name}` is configured"));
    // The name of a tool as the hub lists it.
    if let Some((server, tool)) = name.split_once("__")
        && known.iter().any(|known| known == server)
    {
        return failure.hint(format!(
            "for a tool of the running hub, `call --hub {name}`; without one, `call {server} {tool}`"
        ));
    }
    if let Some(suggestion) = did_you_mean(name, known.iter().map(String::as_str)) {
        return failure.hint(suggestion);
    }
    let known = if known.is_empty() {
        "no configured servers found".to_owned()
    } else {
        format!("known servers: {}", known.join(", "))
    };
    failure.hint(format!("{known}; `-- {name}` starts a program of that name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_server_error_lists_known_servers() {
        let known = ["github".to_owned(), "files".to_owned()];
        for (name, known, part) in [
            ("githab", &known[..], "did you mean `github`?"),
            ("files__read", &known, "`call --hub files__read`; without one, `call files read`"),
            ("zzz", &known, "known servers: github, files; `-- zzz` starts"),
            ("zzz", &[], "no configured servers found"),
        ] {
            let failure = unknown_server(name, known).to_string();
            assert!(failure.contains(part), "{failure}");
        }
    }
}
