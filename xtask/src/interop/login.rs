//! Clients of others log in to a hub of ours through a real authorization server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::row::{ResultRow, RunSelection};
use super::script::{self, ScriptRun, SkipPolicy};
use crate::fixture::{self, FixtureServer};
use crate::tools::InstalledTools;
use crate::{TaskResult, root, run};

pub(super) const COLUMNS: &[&str] = &["login", "tokens", "user"];

/// How long the hub may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// A client that logs in.
#[derive(Debug)]
struct LoginClient {
    name: &'static str,
    user: &'static str,
    options: &'static [&'static str],
}

/// How the authorization server makes access tokens, and the clients that use them.
const TOKENS: &[(&str, &[LoginClient])] = &[
    (
        "jwt",
        &[
            LoginClient { name: "node-v2", user: "ann", options: &[] },
            LoginClient { name: "node-v2", user: "bob", options: &["--dpop"] },
            LoginClient { name: "python-v2", user: "bob", options: &[] },
            LoginClient { name: "mcpjam", user: "ann", options: &[] },
            LoginClient { name: "2026-07-28", user: "bob", options: &[] },
        ],
    ),
    (
        "opaque",
        &[
            LoginClient { name: "node-v2", user: "ann", options: &[] },
            LoginClient { name: "python-v2", user: "bob", options: &[] },
            LoginClient { name: "2026-07-28", user: "bob", options: &[] },
        ],
    ),
];

/// Runs every client against a hub with JWTs, and against one with opaque tokens.
pub(super) fn run_all(tools: &InstalledTools, rows: &RunSelection) -> TaskResult<Vec<ResultRow>> {
    let mut ran = Vec::new();
    for (tokens, clients) in TOKENS {
        let wanted: Vec<_> = clients
            .iter()
            .filter_map(|client| {
                let place = [client.name, tokens, client.user];
                Some((client, place, rows.log_of(&place)?))
            })
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let login = LoginFixture::start(tools, tokens, &rows.results)?;
        for (client, place, log) in wanted {
            let mut command = client_command(tools, client);
            command
                .args(["--url", &login.hub.url("http", "/mcp"), "--user", client.user])
                .args(client.options);
            ran.push(ResultRow::new(&place, &script::run(&mut command, &log, SkipPolicy::Refused)?));
        }
        if rows.only.is_empty() {
            let place = ["audit", tokens, "both"];
            ran.push(ResultRow::new(&place, &login.audited_users()?));
        }
        login.hub.stop(END_TIMEOUT)?;
    }
    Ok(ran)
}

fn client_command(tools: &InstalledTools, client: &LoginClient) -> Command {
    let (program, script): (&Path, PathBuf) = match client.name {
        "python-v2" => (&tools.python_v2, root().join("interop/python/login_v2.py")),
        "mcpjam" => (&tools.node, tools.node_folder.join("referee-mcpjam.mjs")),
        "2026-07-28" => (&tools.node, tools.node_folder.join("referee-2026.mjs")),
        _ => (&tools.node, tools.node_folder.join("login-v2.mjs")),
    };
    let mut command = run::command(program);
    command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// An authorization server, and a hub that trusts it.
struct LoginFixture {
    hub: FixtureServer,
    audit: PathBuf,
    issuer: String,
    _authorization_server: FixtureServer,
}

impl LoginFixture {
    fn start(tools: &InstalledTools, tokens: &str, results: &Path) -> TaskResult<Self> {
        let is_opaque = tokens == "opaque";
        let authorization_server = FixtureServer::start_by(|address| {
            let mut command = run::command(&tools.node);
            command.arg(tools.node_folder.join("authorization-server.mjs"));
            command.args(["--port", &address.port().to_string(), "--client", "rs:secret"]);
            command.args(is_opaque.then_some("--opaque"));
            // It ends with its input.
            command.stdin(Stdio::piped());
            command
        })?;
        let issuer = authorization_server.url("http", "");
        let binary = fixture::build_of("trunkline-cli", "trunkline")?;
        let (config, audit) =
            (results.join(format!("login-{tokens}.toml")), results.join(format!("login-{tokens}.jsonl")));
        let log = File::create(results.join(format!("login-{tokens}-hub.log")))?;
        let mut written = Ok(());
        let hub = FixtureServer::start_by(|address| {
            written = fs::write(&config, table(&format!("http://{address}/mcp"), &issuer, is_opaque));
            let mut command = run::command(&binary);
            command.args([
                "serve",
                "--trust",
                "--builtin",
                "echo",
                "--http",
                &address.to_string(),
                "--config",
            ]);
            command.arg(&config).arg("--audit").arg(&audit).stderr(log);
            command
        });
        written?;
        Ok(Self { hub: hub?, audit, issuer, _authorization_server: authorization_server })
    }

    /// Checks that the audit log has calls of both users, by issuer and subject.
    fn audited_users(&self) -> TaskResult<ScriptRun> {
        let lines = fs::read_to_string(&self.audit)?;
        let users = ["ann", "bob"].map(|user| format!("{} {user}\"", self.issuer));
        let missing: Vec<String> = users
            .iter()
            .filter(|user| !lines.contains(user.as_str()))
            .map(|user| format!("no call of {user}"))
            .collect();
        Ok(ScriptRun::of_checks(users.len(), missing))
    }
}

/// Writes the configuration of a hub at a URL that trusts an issuer.
fn table(url: &str, issuer: &str, is_opaque: bool) -> String {
    let introspection =
        if is_opaque { "introspection = { client_id = \"rs\", client_secret = \"secret\" }\n" } else { "" };
    format!(
        "[auth]\npublic_url = \"{url}\"\nrequired_scopes = [\"mcp:use\"]\n\n[[auth.issuers]]\nissuer = \"{issuer}\"\n{introspection}"
    )
}
