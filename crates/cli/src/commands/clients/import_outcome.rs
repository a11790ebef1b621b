use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use trunkline_config::find::ClientImport;
use trunkline_config::{ConfigEditor, ConfigError, ConfigFile, ConfigVariables};

use super::own_hub::is_own_hub;
use crate::exit::CliFailure;

/// The outcome for one server of a client.
#[derive(Debug)]
pub(super) struct ServerImport {
    pub(super) name: String,
    /// The client that it comes from, and the scope there.
    pub(super) origin: String,
    pub(super) path: String,
    pub(super) outcome: ImportOutcome,
    /// How it is reached, without secrets.
    pub(super) target: String,
    /// What of it has no effect here, or is missing still.
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImportOutcome {
    Imported,
    /// The same server exists already, with its origin.
    AlreadyPresent(String),
    /// Another server of the same name exists already, with its origin.
    NameTaken(String),
    /// It is the hub.
    OwnHub,
    /// It holds secrets, and the file can be read by others.
    ExposedSecrets(Vec<String>),
    /// It makes no sense here.
    Invalid(String),
}

impl ImportOutcome {
    pub(super) fn label(&self, is_written: bool) -> &'static str {
        match (self, is_written) {
            (Self::Imported, true) => "added",
            (Self::Imported, false) => "found",
            _ => "skip",
        }
    }

    fn json_name(&self, is_written: bool) -> &'static str {
        match self {
            Self::Imported if is_written => "imported",
            Self::Imported => "importable",
            Self::AlreadyPresent(_) => "already_present",
            Self::NameTaken(_) => "name_taken",
            Self::OwnHub => "own_hub",
            Self::ExposedSecrets(_) => "exposed_secrets",
            Self::Invalid(_) => "invalid",
        }
    }

    /// Returns why a server was skipped.
    pub(super) fn reason(&self, file: &Path) -> Option<String> {
        let file = file.display();
        match self {
            Self::Imported => None,
            Self::AlreadyPresent(origin) => Some(format!("the same server {origin}")),
            Self::NameTaken(origin) => Some(format!("another server of this name {origin}")),
            Self::OwnHub => Some("this is trunkline itself".to_owned()),
            Self::ExposedSecrets(secrets) => Some(format!(
                "it has a literal secret ({}), and other users can read {file}: run `chmod 600 {file}`, or use a \
variable such as ${{NAME}} there",
                secrets.join(", ")
            )),
            Self::Invalid(problem) => Some(problem.clone()),
        }
    }
}

impl ServerImport {
    pub(super) fn to_json(&self, file: &Path, is_written: bool) -> Value {
        json!({
            "name": self.name,
            "from": self.origin,
            "path": self.path,
            "outcome": self.outcome.json_name(is_written),
            "reason": self.outcome.reason(file),
            "reach": self.target,
            "notes": self.notes,
        })
    }
}

/// Takes the servers of clients into a file that is being edited, the first of each name.
pub(super) fn import_servers(
    editor: &mut ConfigEditor,
    imports: &[&ClientImport],
    own: Option<&str>,
) -> Vec<ServerImport> {
    let place = format!("is in {}", editor.file().path().display());
    let mut origins: BTreeMap<String, String> =
        editor.file().server_names().into_iter().map(|name| (name.to_owned(), place.clone())).collect();
    let mut servers = Vec::new();
    for import in imports {
        let Ok(file) = &import.file else { continue };
        let from = format!("{}, {}", import.client, import.scope);
        for name in file.server_names() {
            let is_disabled = import.disabled.iter().any(|disabled| disabled == name);
            let (outcome, how) = import_server(editor, file, name, is_disabled, &origins, own);
            let mut notes = Vec::new();
            if outcome == ImportOutcome::Imported {
                origins.insert(name.to_owned(), format!("comes from {}", import.client));
                notes = ignored_settings(file, name);
                let is_off = is_disabled || file.server(name).is_ok_and(|server| !server.enabled);
                notes.extend(is_off.then(|| "disabled there; imported as disabled".to_owned()));
                notes.extend(unset_variable(editor, name));
            }
            let path = import.path.display().to_string();
            servers.push(ServerImport {
                name: name.to_owned(),
                origin: from.clone(),
                path,
                outcome,
                target: how,
                notes,
            });
        }
    }
    servers
}

fn import_server(
    editor: &mut ConfigEditor,
    file: &ConfigFile,
    name: &str,
    is_disabled: bool,
    origins: &BTreeMap<String, String>,
    own: Option<&str>,
) -> (ImportOutcome, String) {
    let mut server = match file.server(name) {
        Ok(server) => server,
        Err(error) => return (ImportOutcome::Invalid(short_message(&error)), String::new()),
    };
    server.enabled &= !is_disabled;
    let how = server.location.to_string();
    if is_own_hub(&server, own) {
        return (ImportOutcome::OwnHub, how);
    }
    if let Some(origin) = origins.get(name) {
        let is_same = editor.file().server(name).is_ok_and(|known| known.same_definition(&server));
        let outcome = if is_same { ImportOutcome::AlreadyPresent } else { ImportOutcome::NameTaken };
        return (outcome(origin.clone()), how);
    }
    let secrets = server.literal_secrets();
    if !secrets.is_empty() && !editor.is_private() {
        return (ImportOutcome::ExposedSecrets(secrets), how);
    }
    match editor.add(&server) {
        Ok(()) => (ImportOutcome::Imported, how),
        Err(error) => (ImportOutcome::Invalid(CliFailure::from(error).to_string()), how),
    }
}

/// Describes the problem of a server without its position, which is printed separately.
fn short_message(error: &ConfigError) -> String {
    let messages = error.problems().map(|problem| match problem.key_path() {
        Some(key) => format!("`{key}`: {}", problem.message()),
        None => problem.message().to_owned(),
    });
    messages.collect::<Vec<_>>().join("; ")
}

/// Returns the settings of a server that are ignored.
fn ignored_settings(file: &ConfigFile, name: &str) -> Vec<String> {
    let notes = file.warnings().into_iter().filter(|note| note.server_name() == Some(name));
    notes.map(|note| format!("`{}` {}", note.key_path().unwrap_or_default(), note.message())).collect()
}

/// Returns the problem of a server with an unset environment variable.
fn unset_variable(editor: &ConfigEditor, name: &str) -> Option<String> {
    let file = editor.file();
    let expanded = ConfigFile::parse(file.path(), file.text(), ConfigVariables::from_environment()).ok()?;
    expanded.server(name).err().map(|error| short_message(&error))
}
