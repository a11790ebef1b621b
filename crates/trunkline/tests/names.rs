//! A name is a target: it is looked up where people have their servers.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::client::{Client, Error};
use trunkline::prelude::*;
use trunkline::server::http::{BearerTokens, HttpServerOptions};
use trunkline::transport::Command;
use trunkline::transport::process::{RunLimits, run};

/// The variable that makes this program the server, or a client that was started in some folder.
const ROLE: &str = "TRUNKLINE_TEST_ROLE";

/// Not a test of anything: what the others start. What the harness prints before it is noise to a client.
#[tokio::test]
async fn child_process_entry_point() {
    match std::env::var(ROLE).as_deref() {
        Ok("server") => server().serve(stdio()).await.unwrap(),
        Ok("client") => {
            let said = match Client::connect("near").await {
                Ok(client) => client.call("key", json!({})).await.unwrap().text(),
                Err(error) => error.to_string(),
            };
            println!("said: {said}");
        }
        _ => {}
    }
}

fn server() -> Server {
    Server::new("named").with(Tool::new("key").run(async || std::env::var("KEY").unwrap_or_default()))
}

fn ourselves(words: &str) -> Value {
    let arguments = ["--exact", "child_process_entry_point", "--nocapture", words];
    json!({ "command": std::env::current_exe().unwrap(), "args": arguments,
        "env": { ROLE: "server", "KEY": "of the file" } })
}

/// A folder of one test, which goes when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("trunkline-names-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, servers: &Value) -> PathBuf {
        let path = self.0.join("mcp.json");
        std::fs::write(&path, json!({ "mcpServers": servers }).to_string()).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn named(name: &str, file: &Path) -> Target {
    Target::Name { name: name.to_owned(), file: Some(file.to_owned()) }
}

async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future.into_future()).await.expect("it ends in time")
}

/// Runs a client in a folder, for which this process would have to leave its own.
async fn said_in(folder: &Path) -> String {
    let client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process_entry_point", "--nocapture"])
        .current_dir(folder)
        .env(ROLE, "client")
        // The environment of the user who runs the tests is not used.
        .env("HOME", folder);
    let finished = within(run(&client, &RunLimits::default())).await.unwrap();
    let output = finished.stdout.text();
    let said = output.lines().find_map(|line| line.split_once("said: "));
    said.unwrap_or_else(|| panic!("{output}")).1.to_owned()
}

#[tokio::test]
async fn names_are_looked_up_in_the_working_folder() {
    let folder = Folder::new();
    assert_eq!(said_in(&folder.0).await, "no server named `near` is configured; no configured servers found");
    folder.write(&json!({ "neat": ourselves("x") }));
    let told = "no server named `near` is configured; did you mean `neat`?";
    assert_eq!(said_in(&folder.0).await, told);
    folder.write(&json!({ "near": ourselves("x") }));
    assert_eq!(said_in(&folder.0).await, "of the file");
}

#[tokio::test]
async fn builder_env_overrides_the_config_file() {
    let folder = Folder::new();
    let file = folder.write(&json!({ "near": ourselves("x") }));
    let client = within(Client::builder().env("KEY", "of the program").connect(named("near", &file))).await;
    let said = within(client.unwrap().call("key", json!({}))).await.unwrap();
    assert_eq!(said.text(), "of the program");
}

#[tokio::test]
async fn configured_headers_are_sent_to_their_url() {
    let tokens = BearerTokens::new([("ann", "open-sesame-0123456789-abcdef")]);
    let options = HttpServerOptions { authenticator: Arc::new(tokens), ..HttpServerOptions::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let host = trunkline::Host::new(server().handle().unwrap(), trunkline::HostOptions::default()).unwrap();
    let endpoint = host.http_service(options);
    tokio::spawn(
        async move { http::serve(listener, &endpoint, endpoint.clone(), Duration::from_secs(1)).await },
    );
    let folder = Folder::new();
    let headers = json!({ "Authorization": "Bearer open-sesame-0123456789-abcdef" });
    let file = folder.write(&json!({ "far": { "url": url, "headers": headers }, "bare": { "url": url } }));
    let client = within(Client::connect(named("far", &file))).await.unwrap();
    assert_eq!(client.server().identity.as_ref().unwrap().name, "named");
    for (builder, name) in [(Client::builder(), "bare"), (Client::builder().bearer("wrong"), "far")] {
        let refused = within(builder.connect(named(name, &file))).await;
        assert!(matches!(refused, Err(Error::Unauthorized { status: 401, .. })), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn config_values_never_appear_in_errors() {
    let folder = Folder::new();
    let mute = json!({ "command": "false", "args": ["--key=canary"], "env": { "KEY": "canary" } });
    let file = folder.write(&json!({ "mute": mute, "wrong": { "url": "ftp://canary" } }));
    let Err(Error::Unreachable(error)) = within(Client::connect(named("mute", &file))).await else {
        panic!()
    };
    assert_eq!(error.target, "mute");
    let wrong = within(Client::connect(named("wrong", &file))).await.unwrap_err();
    assert!(
        matches!(&wrong, Error::InvalidOptions { .. }) && wrong.to_string().contains("`wrong`"),
        "{wrong}"
    );
    let source = std::error::Error::source(&wrong).expect("the error of the configuration");
    assert_eq!(source.to_string(), wrong.to_string());
    assert!(!format!("{error} {error:?} {wrong} {wrong:?}").contains("canary"));
}
