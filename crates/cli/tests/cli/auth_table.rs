//! The table `[auth]`: access tokens of authorization servers for a hub and a bridge.

#[path = "../../../auth/tests/issuer/issuer_server.rs"]
#[allow(dead_code, clippy::needless_pass_by_value, reason = "it is shared with other tests")]
mod issuer_server;

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

pub(crate) use self::issuer_server::RESOURCE;
use self::issuer_server::{IssuerKey, IssuerServer};
use crate::bare_client::{get, post};
use crate::messages::{call, modern};
use crate::process::{RunningCommand, file, folder, run, run_with};

/// An issuer that runs beside the test.
pub(crate) struct IssuerFixture {
    pub(crate) server: IssuerServer,
    key: IssuerKey,
    _runtime: Runtime,
}

impl IssuerFixture {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(IssuerServer::start());
        let key = IssuerKey::new("a");
        server.set_keys(&[&key]);
        Self { server, key, _runtime: runtime }
    }

    pub(crate) fn token(&self, changes: &Value) -> String {
        let mut claims = self.server.claims("ann");
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        self.key.sign(Some("at+jwt"), claims)
    }

    /// Writes a file with the table.
    fn write_config(&self, folder: &Path, table: &str) -> String {
        let text = format!("[auth]\n{table}\n[[auth.issuers]]\nissuer = \"{}\"\n", self.server.issuer());
        file(folder, "new", &text, 0o600);
        std::fs::rename(folder.join("new"), folder.join("trunkline.toml")).unwrap();
        folder.join("trunkline.toml").to_str().unwrap().to_owned()
    }
}

fn status(address: SocketAddr, token: &str) -> u16 {
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    post(address, &message, &[("Authorization", &format!("Bearer {token}"))]).status
}

const CRON: &str = "cron-token-0123456789";

#[test]
fn hub_accepts_access_tokens_and_follows_its_table() {
    let issuer = IssuerFixture::start();
    let folder = folder("auth_table");
    file(&folder, "tokens", &format!("cron {CRON}\n"), 0o600);
    let fixed = format!("public_url = \"{RESOURCE}\"\ntokens = \"tokens\"\n");
    let config = issuer.write_config(&folder, &format!("{fixed}required_scopes = [\"mcp:use\"]"));
    let trust = || assert_eq!(run(&["trust", &config], "").code, Some(0));
    trust();
    let (mut running, address) =
        RunningCommand::serve("auth_table_served", &["--config", &config, "--builtin", "echo"]);
    let token = issuer.token(&json!({}));
    assert_eq!([status(address, &token), status(address, CRON), status(address, "unknown")], [200, 200, 401]);
    let foreign = issuer.token(&json!({ "aud": "https://other.example" }));
    assert_eq!(status(address, &foreign), 401);
    let document = get(address, "/.well-known/oauth-protected-resource/mcp", &[]).json();
    assert_eq!(document["resource"], RESOURCE);
    assert_eq!(document["authorization_servers"], json!([issuer.server.issuer()]));
    assert_eq!(document["scopes_supported"], json!(["mcp:use"]));
    let mirrored = get(address, "/.well-known/oauth-authorization-server", &[]).json();
    assert_eq!(mirrored["issuer"], issuer.server.issuer());
    assert_eq!(get(address, "/metrics", &[]).status, 404, "probes are not for the public");
    issuer.write_config(&folder, &format!("{fixed}required_scopes = [\"mcp:admin\"]"));
    let line = running.wait_for("cannot reload [auth], keeping the previous ones");
    assert!(line.contains("not trusted yet"), "{line}");
    assert_eq!(status(address, &token), 200, "the previous table decides");
    trust();
    running.wait_for("reloaded [auth]: 1 issuer");
    assert_eq!([status(address, &token), status(address, CRON)], [403, 200]);
    issuer.write_config(&folder, &format!("{fixed}required_scope = []"));
    let line = running.wait_for("cannot reload [auth], keeping the previous ones");
    assert!(line.contains("required_scope"), "{line}");
    assert_eq!(status(address, &token), 403);
    issuer.write_config(&folder, &fixed);
    trust();
    running.wait_for("reloaded [auth]: 1 issuer");
    assert_eq!(status(address, &token), 200);
    running.signal(Signal::HUP);
    running.wait_for("reloaded [auth]: no change");
}

#[test]
fn bridge_accepts_access_tokens_of_a_file() {
    let issuer = IssuerFixture::start();
    let folder = folder("auth_bridge");
    let config = issuer.write_config(&folder, &format!("public_url = \"{RESOURCE}\""));
    let port_file = folder.join("address");
    let (auth, port) = (format!("config:{config}"), port_file.to_str().unwrap());
    let mut running = RunningCommand::start(&[
        "bridge",
        "--http",
        "127.0.0.1:0",
        "--port-file",
        port,
        "--auth",
        &auth,
        "--",
        env!("CARGO_BIN_EXE_trunkline"),
        "serve",
        "--stdio",
        "--no-config",
        "--builtin",
        "echo",
    ]);
    running.wait_for("127.0.0.1:");
    let address = std::fs::read_to_string(&port_file).unwrap().trim_end().parse().unwrap();
    assert_eq!([status(address, &issuer.token(&json!({}))), status(address, "unknown")], [200, 401]);
}

#[test]
fn auth_tables_that_cannot_be_used_are_refused_with_their_place() {
    let folder = folder("auth_refused");
    let issuer = "[[auth.issuers]]\nissuer = \"https://login.example\"\n";
    let secret = "introspection = { client_id = \"rs\", client_secret = \"${SENTINEL}\" }\n";
    for (table, expected) in [
        (format!("[auth]\n{issuer}"), "need the public URL"),
        (
            "[auth]\npublic_url = \"https://hub.example/mcp\"\n".to_owned(),
            "needs `[[auth.issuers]]` or `tokens`",
        ),
        (format!("[auth]\npublic_url = \"hub\"\n{issuer}"), "is not the URL of an endpoint"),
        (format!("[auth]\npublic_url = \"https://h/mcp\"\n{issuer}algorithms = [\"HS256\"]\n"), "HS256"),
        (format!("[auth]\npublic_url = \"https://h/mcp\"\n{issuer}{issuer}"), "listed twice"),
        (
            format!("[auth]\npublic_url = \"https://h/mcp\"\n{issuer}jwks = \"https://k\"\n{secret}"),
            "either `jwks` or `introspection`",
        ),
        (
            format!(
                "[auth]\npublic_url = \"https://h/mcp\"\n{issuer}{secret}{}{secret}",
                issuer.replace("login", "other")
            ),
            "both use introspection",
        ),
        (
            "[auth]\npublic_url = \"https://h/mcp\"\nissuers = [{ issuer = \"http://login.example\" }]\n"
                .to_owned(),
            "https",
        ),
    ] {
        let config = file(&folder, "trunkline.toml", &table, 0o600);
        let finished = run_with(
            &["serve", "--trust", "--http", ":0", "--config", &config],
            &[("SENTINEL", "sentinel-value")],
            "",
        );
        assert_eq!(finished.code, Some(3), "{table}: {finished:?}");
        assert!(finished.stderr.contains(expected), "{table}: {finished:?}");
        assert!(!finished.stderr.contains("sentinel-value"), "{finished:?}");
    }
    let config = file(&folder, "trunkline.toml", &format!("[auth]\n{issuer}"), 0o600);
    let words = ["serve", "--trust", "--http", ":0", "--config", &config, "--insecure-no-auth"];
    let finished = run_with(&words, &[], "");
    assert!(finished.stderr.contains("contradicts the table [auth]"), "{finished:?}");
}

#[test]
fn auth_table_satisfies_the_rule_for_public_addresses() {
    let issuer = IssuerFixture::start();
    let folder = folder("auth_public");
    let config = issuer.write_config(&folder, &format!("public_url = \"{RESOURCE}\""));
    let mut running =
        RunningCommand::start(&["serve", "--trust", "--http", "0.0.0.0:0", "--config", &config]);
    running.wait_for("listening on");
}
