//! Several hub processes with one token store, and processes that are killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use trunkline_auth::token_store::{FileTokenStore, StoreKey, TokenStore as _};
use trunkline_client::Client;
use trunkline_hub::{LoginAudience, UserLogins};
use trunkline_server::http::BearerTokens;

use crate::front::{ANN, BOB, Front, connect, say};
use crate::logged_in::log_in;
use crate::protected_server::{ProtectedServer, config_at};

/// Names the store and the server to a hub process. Without them the test that is one does nothing.
const STORE_VARIABLE: &str = "TRUNKLINE_TEST_LOGINS";
const SERVER_VARIABLE: &str = "TRUNKLINE_TEST_SERVER";

/// How often a process is killed.
const KILLS: u64 = 12;

/// Is the hub process: prints its origin, and serves until it is killed.
#[tokio::test]
async fn hub_process() {
    let Some(path) = std::env::var_os(STORE_VARIABLE).map(PathBuf::from) else { return };
    let store = FileTokenStore::open(path, StoreKey::plain()).unwrap();
    let logins = UserLogins::new(LoginAudience::EachPrincipal, Arc::new(store));
    let server = config_at(&std::env::var(SERVER_VARIABLE).unwrap(), "notes");
    let front = Front::start(logins, Arc::new(BearerTokens::new([ANN, BOB])), vec![server]).await;
    println!("serves at {}", front.origin);
    std::future::pending::<()>().await;
}

/// A hub process, which is killed when this is dropped.
struct HubProcess {
    child: Child,
    origin: String,
}

impl HubProcess {
    #[expect(clippy::disallowed_methods, reason = "the process is killed and its output is read here")]
    fn start(store: &Path, server: &ProtectedServer) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::hub_process", "--nocapture", "--test-threads=1"])
            .env(STORE_VARIABLE, store)
            .env(SERVER_VARIABLE, &server.origin)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let origin =
            lines.find_map(|line| line.split_once("serves at ").map(|(_, origin)| origin.to_owned()));
        Self { origin: origin.unwrap(), child }
    }

    async fn client(&self) -> Client {
        connect(&self.origin, Client::builder(), ANN).await
    }

    /// Kills it at once, as `kill -9` does.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder of its own, removed at the end.
struct StoreFolder(PathBuf);

impl StoreFolder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("trunkline-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("logins").join("tokens.json")
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_parallel_calls_of_two_hub_processes_make_one_refresh() {
    let folder = StoreFolder::new("two-hubs");
    let server = ProtectedServer::start(&["ann-there"]).await;
    let hubs = [HubProcess::start(&folder.path(), &server), HubProcess::start(&folder.path(), &server)];
    let clients = [hubs[0].client().await, hubs[1].client().await];
    log_in(&clients[0], ANN, "ann-there").await;
    // The other process finds the login in the store.
    assert_eq!(say(&clients[1], "notes__whoami").await, "ann-there");
    assert_eq!(server.issuer.grants("refresh_token"), 0);
    for round in 1..=3 {
        server.issuer.expire_access();
        let said = join_all((0..50).map(|call| say(&clients[call % 2], "notes__whoami"))).await;
        assert!(said.iter().all(|said| said == "ann-there"), "{said:?}");
        assert_eq!(server.issuer.grants("refresh_token"), round);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_hub_process_leaves_a_readable_store_and_at_worst_one_login_to_repeat() {
    let folder = StoreFolder::new("killed-hub");
    let server = ProtectedServer::start(&["ann-there"]).await;
    let mut hub = HubProcess::start(&folder.path(), &server);
    let mut client = hub.client().await;
    log_in(&client, ANN, "ann-there").await;
    for round in 0..KILLS {
        server.issuer.expire_access();
        let before = server.issuer.grants("refresh_token");
        let call = tokio::spawn(async move { say(&client, "notes__whoami").await });
        // Another point of the refresh in each round.
        tokio::time::sleep(Duration::from_micros(round * 1_700)).await;
        hub.kill();
        call.abort();
        let store = FileTokenStore::open(folder.path(), StoreKey::plain()).unwrap();
        assert_eq!(store.list("user:ann").await.unwrap().len(), 1, "round {round}");
        hub = HubProcess::start(&folder.path(), &server);
        client = hub.client().await;
        let said = say(&client, "notes__whoami").await;
        if said != "ann-there" {
            assert!(said.contains("requires a login"), "round {round}: {said}");
            assert!(say(&client, "notes__whoami").await.contains("requires a login"), "round {round}");
            log_in(&client, ANN, "ann-there").await;
        }
        let refreshes = server.issuer.grants("refresh_token") - before;
        assert!(refreshes <= 2, "round {round}: {refreshes} refreshes, without a loop");
    }
}
