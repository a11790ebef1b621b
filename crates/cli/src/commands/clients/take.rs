use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use trunkline_config::find::Import;
use trunkline_config::{ConfigError, ConfigFile, Editor, Variables};

use super::ourselves::is_ourselves;
use crate::exit::Failure;

/// What became of one server of a client.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) name: String,
    /// Whose it is: the client, and for whom there.
    pub(super) from: String,
    pub(super) path: String,
    pub(super) outcome: Outcome,
    /// How it is reached, without secrets.
    pub(super) how: String,
    /// What of it has no effect here, or is missing still.
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Taken,
    /// The same is there already, and where it comes from.
    Same(String),
    /// Another of the same name is there already, and where it comes from.
    Different(String),
    /// It is the hub.
    Ourselves,
    /// It holds secrets, and the file can be read by others.
    Secret(Vec<String>),
    /// It makes no sense here.
    Unusable(String),
}

impl Outcome {
    pub(super) fn word(&self) -> &'static str {
        if *self == Self::Taken { "taken" } else { "skipped" }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Same(_) => "same",
            Self::Different(_) => "different",
            Self::Ourselves => "ourselves",
            Self::Secret(_) => "secret",
            Self::Unusable(_) => "unusable",
        }
    }

    /// Says why a server was skipped.
    pub(super) fn reason(&self, file: &Path) -> Option<String> {
        let file = file.display();
        match self {
            Self::Taken => None,
            Self::Same(origin) => Some(format!("the same {origin}")),
            Self::Different(origin) => Some(format!("another of this name {origin}")),
            Self::Ourselves => Some("it is trunkline itself".to_owned()),
            Self::Secret(secrets) => Some(format!(
                "it has a secret in full ({}), and others can read {file}: run `chmod 600 {file}`, or write it as a \
variable such as ${{NAME}} there",
                secrets.join(", ")
            )),
            Self::Unusable(problem) => Some(problem.clone()),
        }
    }
}

impl Verdict {
    pub(super) fn to_json(&self, file: &Path) -> Value {
        json!({
            "name": self.name,
            "from": self.from,
            "path": self.path,
            "outcome": self.outcome.kind(),
            "reason": self.outcome.reason(file),
            "reach": self.how,
            "notes": self.notes,
        })
    }
}

/// Takes the servers of clients into a file that is being edited, the first of each name.
pub(super) fn take(editor: &mut Editor, imports: &[&Import], own: Option<&str>) -> Vec<Verdict> {
    let place = format!("is in {}", editor.file().path().display());
    let mut origins: BTreeMap<String, String> =
        editor.file().names().into_iter().map(|name| (name.to_owned(), place.clone())).collect();
    let mut verdicts = Vec::new();
    for import in imports {
        let Ok(file) = &import.file else { continue };
        let from = format!("{}, {}", import.client, import.scope);
        for name in file.names() {
            let (outcome, how) = take_one(editor, file, name, &origins, own);
            let mut notes = Vec::new();
            if outcome == Outcome::Taken {
                origins.insert(name.to_owned(), format!("comes from {}", import.client));
                notes = remarks(file, name);
                let is_off = file.server(name).is_ok_and(|server| !server.enabled);
                notes.extend(is_off.then(|| "it is switched off there, and so it is here".to_owned()));
                notes.extend(unset(editor, name));
            }
            let path = import.path.display().to_string();
            verdicts.push(Verdict { name: name.to_owned(), from: from.clone(), path, outcome, how, notes });
        }
    }
    verdicts
}

fn take_one(
    editor: &mut Editor,
    file: &ConfigFile,
    name: &str,
    origins: &BTreeMap<String, String>,
    own: Option<&str>,
) -> (Outcome, String) {
    let server = match file.server(name) {
        Ok(server) => server,
        Err(error) => return (Outcome::Unusable(in_short(&error)), String::new()),
    };
    let how = server.reach.to_string();
    if is_ourselves(&server, own) {
        return (Outcome::Ourselves, how);
    }
    if let Some(origin) = origins.get(name) {
        let is_same = editor.file().server(name).is_ok_and(|known| known.is_written_like(&server));
        let outcome = if is_same { Outcome::Same } else { Outcome::Different };
        return (outcome(origin.clone()), how);
    }
    let secrets = server.literal_secrets();
    if !secrets.is_empty() && !editor.is_private() {
        return (Outcome::Secret(secrets), how);
    }
    match editor.add(&server) {
        Ok(()) => (Outcome::Taken, how),
        Err(error) => (Outcome::Unusable(Failure::from(error).to_string()), how),
    }
}

/// Says what is wrong with a server, without the place, which is told beside it.
fn in_short(error: &ConfigError) -> String {
    let said = error.problems().map(|problem| match problem.key_path() {
        Some(key) => format!("`{key}`: {}", problem.what()),
        None => problem.what().to_owned(),
    });
    said.collect::<Vec<_>>().join("; ")
}

/// Says what of a server has no effect here.
fn remarks(file: &ConfigFile, name: &str) -> Vec<String> {
    let notes = file.notes().into_iter().filter(|note| note.server_name() == Some(name));
    notes.map(|note| format!("`{}` {}", note.key_path().unwrap_or_default(), note.what())).collect()
}

/// Says which variable a server needs and does not have.
fn unset(editor: &Editor, name: &str) -> Option<String> {
    let file = editor.file();
    let expanded = ConfigFile::parse(file.path(), file.text(), Variables::of_process()).ok()?;
    expanded.server(name).err().map(|error| in_short(&error))
}
