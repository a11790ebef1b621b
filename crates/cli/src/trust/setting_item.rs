//! Trust items of the tables of a file besides servers and commands: what they write, read, connect to or send.

use std::path::Path;

use serde_json::{Value, json};
use trunkline_config::{ConfigFile, SECTIONS};

use super::config_location::ConfigLocation;
use super::item::{TrustItem, TrustSubject, fingerprint};
use super::setting_table::{SettingTable, SettingText};
use super::shown_file::shown_file;
use super::store_effects::store_effects;

/// What a table does outside of the hub, in words for the user.
#[derive(Debug, Default)]
pub(super) struct SettingEffects {
    pub(super) line: String,
    pub(super) details: Vec<String>,
    /// The files, where they are now: a link may lead elsewhere later.
    files: Vec<String>,
}

/// Returns the tables that need trust, in the order of [`SECTIONS`]. A table that only changes what the hub lists or
/// allows needs none.
pub(super) fn setting_items(
    file: &ConfigFile,
    unexpanded: &ConfigFile,
    location: &ConfigLocation,
) -> Vec<TrustItem> {
    SECTIONS.iter().filter_map(|name| setting_item(file, unexpanded, name, location)).collect()
}

fn setting_item(
    file: &ConfigFile,
    unexpanded: &ConfigFile,
    name: &str,
    location: &ConfigLocation,
) -> Option<TrustItem> {
    let section = unexpanded.section(name)?;
    // What cannot be read on its own is identified by the whole text.
    let written = section.read::<Value>().unwrap_or_else(|_| unexpanded.text().into());
    // A table with an unset variable is not used.
    let expanded = file.section(name).and_then(|section| section.read::<Value>().ok());
    let table = SettingTable { written: &written, expanded: expanded.as_ref().unwrap_or(&written) };
    let SettingEffects { line, details, files } = effects(name, table, &location.folder)?;
    let definition = json!({ "section": name, "table": written, "files": files });
    Some(TrustItem {
        subject: TrustSubject::Setting,
        name: format!("[{name}]"),
        enabled: true,
        line,
        details,
        fingerprint: fingerprint(location, &definition),
    })
}

fn effects(name: &str, table: SettingTable<'_>, folder: &Path) -> Option<SettingEffects> {
    let found = match name {
        // They belong to the items of servers and commands.
        "servers" | "env" | "commands" | "policy" => return None,
        "serve" | "limits" | "access" => None,
        "audit" => audit_effects(table, folder),
        "store" => table.text("location").and_then(|location| store_effects(location, folder)),
        "manifests" => Some(manifest_effects(table, folder)),
        "vault" => Some(vault_effects(table, folder)),
        "auth" => Some(auth_effects(table, folder)),
        "telemetry" => telemetry_effects(table, folder),
        _ => Some(SettingEffects { line: "changes the hub".to_owned(), ..SettingEffects::default() }),
    };
    let mut variables = Vec::new();
    collect_variables(table.written, &mut variables);
    if variables.is_empty() {
        return found;
    }
    let mut effects = found.unwrap_or_else(|| SettingEffects {
        line: "has environment variables in it".to_owned(),
        ..SettingEffects::default()
    });
    effects.details.push(format!("environment variables: {}", variables.join(", ")));
    Some(effects)
}

fn audit_effects(table: SettingTable<'_>, folder: &Path) -> Option<SettingEffects> {
    let mut effects = SettingEffects::default();
    let has_arguments = table.written.get("arguments").is_some_and(|value| *value != json!(false));
    effects.line = match table.text("file") {
        Some(file) => format!("writes a line for each call to {}", effects.file(folder, file)),
        // The option `--audit` may name a file.
        None if has_arguments || table.written.get("file").is_some() => "changes the audit log".to_owned(),
        None => return None,
    };
    if has_arguments {
        effects.details.push("with the arguments of the calls".to_owned());
    }
    Some(effects)
}

fn manifest_effects(table: SettingTable<'_>, folder: &Path) -> SettingEffects {
    let mut effects = SettingEffects::default();
    let directory = effects.file(folder, table.text("directory").unwrap_or_default());
    let files = table.texts("files");
    let files: Vec<&str> = files.into_iter().map(|text| text.written).collect();
    effects.line = format!("serves the files {} in and around {directory}", files.join(", "));
    effects
}

fn vault_effects(table: SettingTable<'_>, folder: &Path) -> SettingEffects {
    let mut effects = SettingEffects::default();
    effects.line = match table.text("file") {
        Some(file) => format!("stores logins in {}", effects.file(folder, file)),
        None => "stores logins in your own file of logins".to_owned(),
    };
    let keys = table.texts("key_files");
    let keys: Vec<String> = keys.into_iter().map(|key| effects.file(folder, key)).collect();
    if !keys.is_empty() {
        effects.details.push(format!("sealed with the keys: {}", keys.join(", ")));
    }
    if table.written.get("keychain").is_some_and(|value| *value != json!(false)) {
        effects.details.push("reads a key of your keychain".to_owned());
    }
    effects
}

fn telemetry_effects(table: SettingTable<'_>, folder: &Path) -> Option<SettingEffects> {
    let mut effects = SettingEffects::default();
    let names = |key: &str| {
        let entries = table.written.get(key).and_then(Value::as_object);
        entries.into_iter().flat_map(|entries| entries.keys().cloned()).collect::<Vec<_>>()
    };
    effects.line = match text(table.written, "endpoint") {
        Some(endpoint) => format!("sends names and times of calls to {endpoint}"),
        // A variable of OpenTelemetry may have an address.
        None if table.written.as_object().is_some_and(|table| !table.is_empty()) => {
            "changes what traces and metrics are exported".to_owned()
        }
        None => return None,
    };
    let headers = names("headers");
    if !headers.is_empty() {
        effects.details.push(format!("with the headers: {}", headers.join(", ")));
    }
    if let Some(ca) = table.text("ca") {
        let file = effects.file(folder, ca);
        effects.details.push(format!("trusts the authorities in {file}"));
    }
    Some(effects)
}

fn auth_effects(table: SettingTable<'_>, folder: &Path) -> SettingEffects {
    let mut effects = SettingEffects::default();
    let issuers =
        table.written.get("issuers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = issuers.iter().filter_map(|issuer| text(issuer, "issuer")).collect();
    effects.line = match names.as_slice() {
        [] => "decides who may call".to_owned(),
        names => format!("admits callers with access tokens of {}", names.join(", ")),
    };
    for (key, what) in [("tokens", "admits callers with the tokens in"), ("ca", "trusts the authorities in")]
    {
        if let Some(file) = table.text(key) {
            let file = effects.file(folder, file);
            effects.details.push(format!("{what} {file}"));
        }
    }
    let introspection = issuers.iter().filter_map(|issuer| issuer.get("introspection"));
    let endpoints = issuers.iter().filter_map(|issuer| text(issuer, "jwks"));
    let endpoints = endpoints.chain(introspection.filter_map(|table| text(table, "endpoint")));
    effects.details.extend(endpoints.map(|endpoint| format!("connects to: {endpoint}")));
    effects
}

impl SettingEffects {
    /// Adds a file, and returns it as it is shown.
    pub(super) fn file(&mut self, folder: &Path, file: SettingText<'_>) -> String {
        let shown = shown_file(&folder.join(file.expanded), file.written);
        self.files.push(shown.clone());
        shown
    }
}

fn text<'a>(table: &'a Value, key: &str) -> Option<&'a str> {
    table.get(key).and_then(Value::as_str)
}

/// Collects the names of the variables in a table, each once. Tables are as deep as a configuration may be.
fn collect_variables(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            for rest in text.split("${").skip(1) {
                let name = rest.split(['}', ':']).next().unwrap_or_default().to_owned();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_variables(element, names)),
        Value::Object(entries) => entries.values().for_each(|entry| collect_variables(entry, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use trunkline_config::ConfigVariables;

    use super::*;

    fn items(text: &str) -> Vec<TrustItem> {
        items_of(Path::new("/nowhere/trunkline.toml"), text, ConfigVariables::unexpanded())
    }

    fn items_of(path: &Path, text: &str, variables: ConfigVariables) -> Vec<TrustItem> {
        let parse = |variables| ConfigFile::parse(path, text, variables).unwrap();
        let unexpanded = parse(ConfigVariables::unexpanded());
        setting_items(&parse(variables), &unexpanded, &ConfigLocation::of(path))
    }

    fn shown(text: &str) -> Vec<String> {
        let lines = |item: TrustItem| [vec![item.name, item.line], item.details].concat().join("; ");
        items(text).into_iter().map(lines).collect()
    }

    const HARMFUL: [(&str, &str); 13] = [
        (
            "[audit]\nfile = \"../.bashrc\"\narguments = true\n",
            "[audit]; writes a line for each call to /.bashrc; with the arguments of the calls",
        ),
        ("[audit]\narguments = true\n", "[audit]; changes the audit log; with the arguments of the calls"),
        ("[store]\nlocation = \"file:/var/x.redb\"\n", "[store]; stores sessions in /var/x.redb"),
        (
            "[store]\nlocation = \"rediss://hub:s3cret@h/1?ca=ca.pem\"\n",
            "[store]; stores sessions in rediss://hub:***@h:6379/1; trusts the authorities in /nowhere/ca.pem",
        ),
        (
            "[store]\nlocation = \"redis://${USER}:s3cret@h?password_file=/p/w@rd\"\n",
            "[store]; stores sessions in redis://rd; environment variables: USER",
        ),
        (
            "[store]\nlocation = \"redis://h?password_file=secret\"\n",
            "[store]; stores sessions in redis://h:6379/0; sends the first line of /nowhere/secret as the password",
        ),
        (
            "[manifests]\nfiles = [\"*.toml\"]\ndirectory = \"${HOME}\"\n",
            "[manifests]; serves the files *.toml in and around ${HOME}; environment variables: HOME",
        ),
        (
            "[vault]\nfile = \"v\"\nkey_files = [\"k\"]\n",
            "[vault]; stores logins in /nowhere/v; sealed with the keys: /nowhere/k",
        ),
        (
            "[auth]\ntokens = \"t\"\n[[auth.issuers]]\nissuer = \"https://i\"\njwks = \"http://10.0.0.1/k\"\n\
             connect_client_secret = \"${SECRET:-x}\"\n",
            "[auth]; admits callers with access tokens of https://i; admits callers with the tokens in \
             /nowhere/t; connects to: http://10.0.0.1/k; environment variables: SECRET",
        ),
        (
            "[telemetry]\nendpoint = \"http://c:4318\"\nheaders = { key = \"${KEY}\" }\nca = \"a\"\n",
            "[telemetry]; sends names and times of calls to http://c:4318; with the headers: key; trusts the \
             authorities in /nowhere/a; environment variables: KEY",
        ),
        ("[telemetry]\nsample = 0.1\n", "[telemetry]; changes what traces and metrics are exported"),
        (
            "[serve]\nnames = \"${TOKEN}_{tool}\"\n",
            "[serve]; has environment variables in it; environment variables: TOKEN",
        ),
        (
            "[[access]]\nname = \"${TOKEN}\"\naction = \"allow\"\n",
            "[access]; has environment variables in it; environment variables: TOKEN",
        ),
    ];

    #[test]
    fn settings_that_write_read_connect_or_send_need_trust() {
        for (text, expected) in HARMFUL {
            assert_eq!(shown(text), [expected], "{text}");
        }
    }

    #[test]
    fn settings_that_stay_within_the_hub_need_no_trust() {
        for harmless in [
            "[audit]\non_failure = \"refuse\"\n",
            "[store]\nlocation = \"memory\"\n",
            "[serve]\nnames = \"{server}_{tool}\"\n",
            "[limits]\nprincipal = \"10/1s\"\n",
            "[[access]]\naction = \"deny\"\n",
        ] {
            assert_eq!(shown(harmless), Vec::<String>::new(), "{harmless}");
        }
    }

    #[test]
    fn every_section_is_decided_on_by_its_name() {
        let empty = json!({});
        let table = SettingTable { written: &empty, expanded: &empty };
        for name in SECTIONS {
            let effects = effects(name, table, Path::new("/nowhere"));
            assert!(effects.is_none_or(|effects| effects.line != "changes the hub"), "{name}");
        }
    }

    #[test]
    fn fingerprint_of_a_setting_changes_with_its_table() {
        let fingerprints =
            |text: &str| items(text).into_iter().map(|item| item.fingerprint).collect::<Vec<_>>();
        let base = "[audit]\nfile = \"a\"\n";
        assert_ne!(fingerprints(base), fingerprints("[audit]\nfile = \"b\"\n"));
        assert_ne!(fingerprints(base), fingerprints(&format!("{base}arguments = true\n")));
        assert_eq!(fingerprints(base), fingerprints(&format!("# A comment.\n{base}[limits]\n")));
    }

    #[cfg(unix)]
    #[test]
    fn dangling_links_of_settings_are_followed() {
        let folder = std::env::temp_dir().join(format!("trunkline-settings-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let folder = std::fs::canonicalize(folder).unwrap();
        let shown = |text: &str| {
            let variables = ConfigVariables::fixed([("AT", folder.to_str().unwrap()), ("SECRET", "s3cret")]);
            items_of(&folder.join("trunkline.toml"), text, variables).remove(0)
        };
        let (plain, variable) = ("[audit]\nfile = \"a\"\n", "[audit]\nfile = \"${AT}/a\"\n");
        let before = [plain, variable].map(|text| shown(text).fingerprint);
        assert!(shown(variable).line.ends_with(" to ${AT}/a"), "{}", shown(variable).line);
        let unset = shown("[audit]\nfile = \"${SECRET}\"\n");
        assert!(unset.line.ends_with(" to ${SECRET}"), "{}", unset.line);
        std::os::unix::fs::symlink("/nowhere/else", folder.join("a")).unwrap();
        for ((text, expected), before) in
            [(plain, " to /nowhere/else"), (variable, " to ${AT}/a (/nowhere/else)")].into_iter().zip(before)
        {
            let after = shown(text);
            assert!(after.line.ends_with(expected), "{}", after.line);
            assert_ne!(after.fingerprint, before);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
