use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use trunkline_config::{
    ConfigFile, ConfigText, ConfigVariables, LocalProgram, RemoteEndpoint, ServerAuth, ServerConfig,
    ServerLocation,
};

use super::config_location::ConfigLocation;
use super::setting_item::setting_items;
use super::shown_file::shown_file;
use crate::configured_commands::ConfiguredCommands;

/// What a [`TrustItem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustSubject {
    /// A server with a command, which the hub starts.
    Program,
    /// A server with a URL, to which environment variables are sent.
    Endpoint,
    /// A described command, which clients of the hub run.
    Command,
    /// A table of the file by which the hub writes, reads, connects or sends something.
    Setting,
}

/// Something in a configuration file that could harm the user: a command line, variables that are sent elsewhere, or a
/// file that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustItem {
    pub(crate) subject: TrustSubject,
    /// The name of the server or command, or that of the table, as `[audit]`.
    pub(crate) name: String,
    /// Whether it is used before the user enables it.
    pub(crate) enabled: bool,
    /// The whole command line or URL as written. Nothing is redacted: a redacted word could hide what runs.
    pub(crate) line: String,
    /// Environment variables, folder and headers, by name.
    pub(crate) details: Vec<String>,
    /// A digest of the path of the file and of everything that decides what runs.
    pub(crate) fingerprint: String,
}

impl TrustItem {
    /// Reports whether it is a server of this name.
    pub(crate) fn is_server(&self, name: &str) -> bool {
        matches!(self.subject, TrustSubject::Program | TrustSubject::Endpoint) && self.name == name
    }
}

/// Returns everything in a file that needs trust, in the order of the file.
///
/// A server with an unset variable is included, so that it needs no trust later. A server that cannot be read at all is
/// never used, and not included.
pub(crate) fn items_of(file: &ConfigFile) -> Vec<TrustItem> {
    let with = |variables| ConfigFile::parse(file.path(), file.text(), variables);
    let Ok(unexpanded) = with(ConfigVariables::unexpanded()) else { return Vec::new() };
    let location = ConfigLocation::of(file.path());
    let read = |name: &str| file.server(name).or_else(|_| unexpanded.server(name)).ok();
    let servers = file.server_names().into_iter().filter_map(read);
    let servers = servers.filter_map(|server| server_item(&server, &location));
    let commands = command_items(&unexpanded, &location);
    servers.chain(commands).chain(setting_items(file, &unexpanded, &location)).collect()
}

fn server_item(server: &ServerConfig, file: &ConfigLocation) -> Option<TrustItem> {
    let (subject, line, mut details, mut definition) = match &server.location {
        ServerLocation::Program(program) => program_parts(program),
        ServerLocation::Endpoint(endpoint) => endpoint_parts(endpoint, server)?,
    };
    if !server.caller_env.is_empty() {
        details.push(format!("gets variables of callers: {}", server.caller_env.join(", ")));
        add_key(&mut definition, "caller_env", json!(server.caller_env));
    }
    Some(TrustItem {
        subject,
        name: server.name.to_string(),
        enabled: server.enabled,
        line,
        details,
        fingerprint: fingerprint(file, &definition),
    })
}

type ItemParts = (TrustSubject, String, Vec<String>, Value);

fn program_parts(program: &LocalProgram) -> ItemParts {
    let words: Vec<&str> =
        std::iter::once(&program.command).chain(&program.args).map(ConfigText::as_written).collect();
    let cwd = program.cwd.as_ref().map(ConfigText::as_written);
    let env: Value = program.env.iter().map(|(name, value)| (name.clone(), value.as_written())).collect();
    let mut details = Vec::new();
    if !program.env.is_empty() {
        let names: Vec<&str> = program.env.keys().map(String::as_str).collect();
        details.push(format!("environment: {}", names.join(", ")));
    }
    details.extend(cwd.map(|cwd| format!("folder: {cwd}")));
    (
        TrustSubject::Program,
        command_line(&words),
        details,
        json!({ "program": words, "env": env, "cwd": cwd }),
    )
}

/// Returns `None` for an endpoint to which no variable, file or token is sent: connecting to it harms nothing.
fn endpoint_parts(endpoint: &RemoteEndpoint, server: &ServerConfig) -> Option<ItemParts> {
    let has_variable = |text: &ConfigText| text.as_written().contains("${");
    let headers = endpoint.headers.iter().filter(|(_, value)| has_variable(value));
    let names: Vec<&str> = headers.map(|(name, _)| name.as_str()).collect();
    let auth = auth_definition(&server.auth);
    if names.is_empty() && !has_variable(&endpoint.url) && auth.is_none() && server.caller_env.is_empty() {
        return None;
    }
    let headers: Value =
        endpoint.headers.iter().map(|(name, value)| (name.clone(), value.as_written())).collect();
    let sent = (!names.is_empty()).then(|| format!("sends environment variables in: {}", names.join(", ")));
    let mut definition = json!({ "url": endpoint.url.as_written(), "headers": headers });
    let mut details: Vec<String> = sent.into_iter().collect();
    if let Some(auth) = auth {
        details.push(auth_line(&server.auth));
        add_key(&mut definition, "auth", auth);
        let files: Vec<String> = auth_files(&server.auth).map(|(_, file)| file).collect();
        if !files.is_empty() {
            add_key(&mut definition, "auth_files", json!(files));
        }
    }
    Some((TrustSubject::Endpoint, endpoint.address(), details, definition))
}

/// The keys of `auth` by which something is read from this machine, or sent to a place that the file names.
const SENT_BY_AUTH: [&str; 4] = ["private_key", "token_file", "idp_token_endpoint", "token_endpoint"];

/// The keys of `auth` that name a file.
const FILES_OF_AUTH: [&str; 2] = ["private_key", "token_file"];

/// Shows how tokens are obtained: from which files and places. A secret is not shown, since it decides neither.
fn auth_line(auth: &ServerAuth) -> String {
    let is_place = |key: &str| SENT_BY_AUTH.contains(&key) && !FILES_OF_AUTH.contains(&key);
    let places = auth.texts().into_iter().filter(|(key, _)| is_place(key));
    let places = places.filter_map(|(key, text)| Some((key, text?.as_written().to_owned())));
    let shown = auth_files(auth).chain(places).map(|(key, place)| format!(", {key} {place}"));
    format!("obtains tokens: {}{}", auth.kind.as_str(), shown.collect::<String>())
}

/// Returns the files of which the content is sent or signs what is sent, as they are shown, with their keys.
fn auth_files(auth: &ServerAuth) -> impl Iterator<Item = (&'static str, String)> {
    let files = auth.texts().into_iter().filter(|(key, _)| FILES_OF_AUTH.contains(key));
    files.filter_map(|(key, text)| text.map(|text| (key, shown_file(&auth.path_of(text), text.as_written()))))
}

/// Returns how tokens are obtained, as written, if a file, a variable or the token of a caller is sent for that; where
/// each user logs in with a page that they see, nothing is.
fn auth_definition(auth: &ServerAuth) -> Option<Value> {
    let texts = auth.texts().into_iter().filter_map(|(key, text)| Some((key, text?.as_written())));
    let texts: Vec<(&str, &str)> = texts.collect();
    let needs_trust = texts.iter().any(|(key, text)| SENT_BY_AUTH.contains(key) || text.contains("${"));
    needs_trust.then(|| {
        let mut written: Value = texts.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
        add_key(&mut written, "type", auth.kind.as_str().into());
        written
    })
}

/// Returns the described commands of a file. The policy belongs to each of them: it decides what may be called unasked.
fn command_items(unexpanded: &ConfigFile, file: &ConfigLocation) -> Vec<TrustItem> {
    let described = ConfiguredCommands::from_config(unexpanded, &mut Vec::new());
    let section = |name: &str| -> Value {
        let read = unexpanded.section(name).map(|section| section.read::<Value>());
        // What cannot be read on its own is identified by the whole text.
        read.map_or(Value::Null, |read| read.unwrap_or_else(|_| unexpanded.text().into()))
    };
    let (all, policy, shared_env) = (section("commands"), section("policy"), section("env"));
    let items = described.commands.commands().iter().map(|command| {
        let definition = all.get(command.name()).unwrap_or(&all);
        let mut definition = json!({ "command": command.name(), "definition": definition, "policy": policy });
        if !shared_env.is_null() {
            add_key(&mut definition, "env", shared_env.clone());
        }
        let words = command.template();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let env = command.environment();
        let env = (!env.is_empty()).then(|| format!("environment: {}", env.join(", ")));
        TrustItem {
            subject: TrustSubject::Command,
            name: command.name().to_owned(),
            enabled: true,
            line: command_line(&words),
            details: env.into_iter().chain([format!("folder: {}", command.folder().display())]).collect(),
            fingerprint: fingerprint(file, &definition),
        }
    });
    items.collect()
}

/// Adds a key to a definition, only where a file has it: definitions that were trusted before stay the same.
fn add_key(definition: &mut Value, key: &str, value: Value) {
    if let Some(object) = definition.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

/// Joins the words of a command line, each quoted if it has to be.
fn command_line(words: &[&str]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./@:=+,%${}~".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) { (*word).to_owned() } else { format!("{word:?}") }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

pub(super) fn fingerprint(file: &ConfigLocation, definition: &Value) -> String {
    let mut hasher = Sha256::new();
    // The relative paths of a linked file count from the folder of the link.
    for path in std::iter::once(&file.file).chain(&file.linked_from) {
        hasher.update(path.as_os_str().as_encoded_bytes());
        // No path contains a NUL, so that no other sequence has the same bytes.
        hasher.update([0]);
    }
    hasher.update(definition.to_string());
    let mut digits = String::new();
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(path: &str, text: &str) -> Vec<TrustItem> {
        items_of(&ConfigFile::parse(path, text, ConfigVariables::fixed([("SET", "value")])).unwrap())
    }

    fn fingerprints(text: &str) -> Vec<String> {
        items("/w/trunkline.toml", text).into_iter().map(|item| item.fingerprint).collect()
    }

    #[test]
    fn only_commands_and_endpoints_with_variables_need_trust() {
        let text = "[servers.plain]\nurl = \"https://a.example/mcp\"\n\
            [servers.sends]\nurl = \"https://b.example/mcp\"\nheaders = { X-Key = \"${SET}\" }\n\
            [servers.unset]\ncommand = \"run\"\nargs = [\"--token\", \"${UNSET}\"]\nenv = { A = \"secret\" }\ncwd = \"sub\"\n\
            [servers.broken]\nurl = \"ftp://x\"\n\
            [commands.log]\nargv = [\"git\", \"log\"]\n";
        let items = items("/w/trunkline.toml", text);
        let seen: Vec<_> = items.iter().map(|item| (&*item.name, &*item.line)).collect();
        let expected =
            [("sends", "https://b.example/mcp"), ("unset", "run --token ${UNSET}"), ("log", "git log")];
        assert_eq!(seen, expected);
        assert_eq!(items[0].details, ["sends environment variables in: x-key"]);
        assert_eq!(items[1].details, ["environment: A", "folder: sub"], "names and no values");
    }

    #[test]
    fn command_line_of_a_trust_item_is_never_redacted() {
        let text = "[servers.a]\ncommand = \"sh\"\nargs = [\"-c\", \"$0\", \"--token=evil\"]\n";
        assert_eq!(
            items("/w/trunkline.toml", text)[0].line,
            "sh -c \"$0\" --token=evil".replace("\"$0\"", "$0")
        );
    }

    #[test]
    fn fingerprint_changes_with_every_part_of_the_command() {
        let base =
            "[servers.a]\ncommand = \"run\"\nargs = [\"x\", \"y\"]\nenv = { A = \"1\" }\ncwd = \"sub\"\n";
        for (from, to) in [
            ("\"run\"", "\"walk\""),
            ("\"x\", \"y\"", "\"x y\""),
            ("A = \"1\"", "A = \"2\""),
            ("\"sub\"", "\"other\""),
        ] {
            assert_ne!(fingerprints(base), fingerprints(&base.replace(from, to)), "{to}");
        }
        for same in
            [format!("{base}timeout = \"3s\"\n"), format!("# A comment.\n{base}"), base.replace(".a", ".b")]
        {
            assert_eq!(fingerprints(base), fingerprints(&same), "{same}");
        }
        let elsewhere = items("/elsewhere/trunkline.toml", base);
        assert_ne!(fingerprints(base), [&*elsewhere[0].fingerprint], "the path counts");
        let command = "[commands.log]\nargv = [\"git\", \"log\"]\n";
        assert_ne!(fingerprints(command), fingerprints(&format!("{command}[policy]\ndefault = \"deny\"\n")));
        assert_ne!(
            fingerprints(command),
            fingerprints(&format!("{command}[env]\nLD_PRELOAD = \"./x.so\"\n"))
        );
        assert_ne!(fingerprints(base), fingerprints(&format!("{base}caller_env = [\"TOKEN\"]\n")));
    }

    #[test]
    fn endpoint_that_gets_tokens_files_or_variables_needs_trust() {
        let base = "[servers.a]\nurl = \"https://a.example/mcp\"\n";
        let exchange = |at: &str| {
            format!(
                "{base}auth = {{ type = \"token-exchange\", token_endpoint = \"https://{at}/t\", client_id = \"c\" }}\n"
            )
        };
        for harmless in [base.to_owned(), format!("{base}auth = {{ type = \"user\", client_id = \"c\" }}\n")]
        {
            assert!(fingerprints(&harmless).is_empty(), "{harmless}");
        }
        for (one, other) in [
            (exchange("a.example"), exchange("b.example")),
            (format!("{base}caller_env = [\"A\"]\n"), format!("{base}caller_env = [\"B\"]\n")),
            (
                format!("{base}auth = {{ type = \"workload-identity\", token_file = \"a\" }}\n"),
                format!("{base}auth = {{ type = \"workload-identity\", token_file = \"b\" }}\n"),
            ),
            (
                format!("{base}auth = {{ client_id = \"c\", client_secret = \"${{SET}}\" }}\n"),
                format!("{base}auth = {{ client_id = \"d\", client_secret = \"${{SET}}\" }}\n"),
            ),
        ] {
            assert_eq!(fingerprints(&one).len(), 1, "{one}");
            assert_ne!(fingerprints(&one), fingerprints(&other), "{one}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_of_token_and_key_files_are_followed() {
        let folder = std::env::temp_dir().join(format!("trunkline-auth-files-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("trunkline.toml");
        for (auth, key) in [
            ("type = \"workload-identity\", token_file = \"f\"", "token_file"),
            ("type = \"client-credentials\", client_id = \"c\", private_key = \"f\"", "private_key"),
        ] {
            let text = format!("[servers.a]\nurl = \"https://a.example/mcp\"\nauth = {{ {auth} }}\n");
            let item = || items(config.to_str().unwrap(), &text).remove(0);
            let before = item();
            std::os::unix::fs::symlink("/nowhere/secret", folder.join("f")).unwrap();
            let after = item();
            assert!(after.details[0].contains(&format!(", {key} /nowhere/secret")), "{:?}", after.details);
            assert_ne!(before.fingerprint, after.fingerprint);
            std::fs::remove_file(folder.join("f")).unwrap();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
