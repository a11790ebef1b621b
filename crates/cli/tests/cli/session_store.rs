//! `--store file:PATH`: legacy sessions go on after the process was killed and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bare_client::{HttpReply, RawConnection, get, post, request, send};
use crate::messages::{call, initialize, initialized, legacy};
use crate::process::{RunningCommand, file, folder, run, run_in};

const OWN_BINARY: &str = env!("CARGO_BIN_EXE_trunkline");

/// A folder with a store and its key.
pub(crate) struct StoreFolder {
    pub(crate) folder: PathBuf,
    pub(crate) store: String,
    pub(crate) key: String,
}

impl StoreFolder {
    pub(crate) fn new(test: &str) -> Self {
        let folder = folder(test);
        let key = file(&folder, "state.key", &"k".repeat(32), 0o600);
        let store = format!("file:{}", folder.join("sessions.redb").display());
        Self { folder, store, key }
    }

    /// Starts a server with the store.
    #[track_caller]
    pub(crate) fn serve(&self, args: &[&str]) -> (RunningCommand, SocketAddr) {
        let port_file = self.folder.join("address");
        let _ = std::fs::remove_file(&port_file);
        let fixed = ["serve", "--trust", "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
        let stored = ["--store", &self.store, "--state-key", &self.key];
        let mut running = RunningCommand::start_in(&[&fixed[..], &stored, args].concat(), &self.folder);
        running.wait_for("listening on http://127.0.0.1:");
        let address = std::fs::read_to_string(&port_file).unwrap().trim_end().parse().unwrap();
        (running, address)
    }
}

pub(crate) fn kill(running: RunningCommand) {
    running.signal(Signal::KILL);
    running.wait();
}

/// A legacy session of a client that outlives the server.
#[derive(Clone)]
pub(crate) struct StoredSession {
    pub(crate) id: String,
}

impl StoredSession {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let opened = post(address, &initialize(), &[]);
        assert_eq!(opened.status, 200, "{opened:?}");
        let session = Self { id: opened.header("mcp-session-id").unwrap().to_owned() };
        assert_eq!(session.post(address, &initialized()).status, 202);
        session
    }

    pub(crate) fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.id), ("MCP-Protocol-Version", "2025-11-25")]
    }

    pub(crate) fn post(&self, address: SocketAddr, message: &Value) -> HttpReply {
        post(address, message, &self.headers())
    }

    #[track_caller]
    pub(crate) fn call(&self, address: SocketAddr, tool: &str, arguments: Value) -> Value {
        self.post(address, &legacy(2, "tools/call", call(tool, arguments))).json()
    }

    /// Opens a standalone stream, or resumes a stream after an event.
    pub(crate) fn stream(&self, address: SocketAddr, last: Option<&str>) -> RawConnection {
        let mut stream = RawConnection::open(address);
        let [session, version] = self.headers();
        let mut headers = vec![session, version, ("Accept", "text/event-stream")];
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        stream.write(&request(address, "GET /mcp", &headers, ""));
        stream
    }
}

/// Waits for the first event and returns its id.
pub(crate) fn event_id(stream: &mut RawConnection) -> String {
    let seen = stream.read_until("\n\n");
    let id = seen.lines().find_map(|line| line.strip_prefix("id: "));
    id.unwrap_or_else(|| panic!("{seen}")).to_owned()
}

#[test]
fn session_continues_after_kill_and_restart() {
    let place = StoreFolder::new("stored_session");
    let (running, address) = place.serve(&["--no-config"]);
    let session = StoredSession::open(address);
    let deleted = StoredSession::open(address);
    assert_eq!(send(address, "DELETE /mcp", &deleted.headers(), "").status, 204);
    let watch = legacy(3, "resources/subscribe", json!({ "uri": "time://now" }));
    let watched = session.post(address, &watch).json();
    let mut stream = session.stream(address, None);
    let opening = event_id(&mut stream);
    kill(running);

    let (running, address) = place.serve(&["--no-config"]);
    let answer = session.call(address, "echo", json!({ "message": "still here" }));
    assert_eq!(answer["result"]["content"][0]["text"], "still here", "{answer}");
    assert_eq!(deleted.post(address, &legacy(4, "ping", json!({}))).status, 404);
    let mut stream = session.stream(address, Some(&opening));
    stream.read_until("\r\n");
    assert!(stream.seen().starts_with("HTTP/1.1 200 "), "{}", stream.seen());
    let metrics = get(address, "/metrics", &[]).body;
    assert!(metrics.contains("mcp_server_stored_sessions{store=\"file\"} 1\n"), "{metrics}");
    // A second answer to the same request is what the first one was.
    assert_eq!(session.post(address, &watch).json()["result"], watched["result"]);
    assert_eq!(send(address, "DELETE /mcp", &session.headers(), "").status, 204);
    kill(running);

    let (running, address) = place.serve(&["--no-config"]);
    assert_eq!(session.post(address, &legacy(5, "ping", json!({}))).status, 404);
    drop(running);
}

#[test]
fn hub_starts_its_programs_again_for_a_stored_session() {
    let place = StoreFolder::new("stored_hub");
    let text = format!(
        "[servers.a]\ncommand = {OWN_BINARY:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\", \"--builtin\", \"echo\"]\n\
         [store]\nlocation = \"file:hub.redb\"\n"
    );
    file(&place.folder, "trunkline.toml", &text, 0o600);
    // The table of the file is used without the option.
    let serve = || {
        let port_file = place.folder.join("address");
        let _ = std::fs::remove_file(&port_file);
        let port_file = port_file.to_str().unwrap();
        let args = [
            "serve",
            "--trust",
            "--http",
            "127.0.0.1:0",
            "--port-file",
            port_file,
            "--state-key",
            &place.key,
        ];
        let mut running = RunningCommand::start_in(&args, &place.folder);
        running.wait_for("listening on http://127.0.0.1:");
        let address: SocketAddr = std::fs::read_to_string(port_file).unwrap().trim_end().parse().unwrap();
        (running, address)
    };
    let (running, address) = serve();
    let session = StoredSession::open(address);
    for message in ["before", "again"] {
        let answer = session.call(address, "a__echo", json!({ "message": message }));
        assert_eq!(answer["result"]["content"][0]["text"], message, "{answer}");
    }
    kill(running);
    let (_running, address) = serve();
    let answer = session.call(address, "a__echo", json!({ "message": "after" }));
    assert_eq!(answer["result"]["content"][0]["text"], "after", "{answer}");
    assert!(place.folder.join("hub.redb").exists());
}

#[test]
fn call_that_ended_with_the_process_gets_an_error_on_its_resumed_stream() {
    let place = StoreFolder::new("stored_lost_call");
    file(&place.folder, "trunkline.toml", "[commands.slow]\nargv = [\"sleep\", \"600\"]\n", 0o600);
    let (running, address) = place.serve(&[]);
    let session = StoredSession::open(address);
    let mut stream = RawConnection::open(address);
    let message = legacy(7, "tools/call", call("slow", json!({}))).to_string();
    let [id, version] = session.headers();
    let accept = ("Accept", "application/json, text/event-stream");
    stream.write(&request(address, "POST /mcp", &[id, version, accept], &message));
    let opening = event_id(&mut stream);
    kill(running);

    let (_running, address) = place.serve(&[]);
    let mut resumed = session.stream(address, Some(&opening));
    let seen = resumed.read_to_end();
    let data = seen.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_else(|| panic!("{seen}"));
    let error: Value = serde_json::from_str(data).unwrap();
    assert_eq!(error["id"], 7, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("restarted"), "{error}");
    assert!(!seen.contains("trunkline/request"), "{seen}");
}

pub(crate) fn refused(folder: &Path, args: &[&str]) -> String {
    let fixed = ["serve", "--no-config", "--http", "127.0.0.1:0"];
    let finished = run(&[&fixed[..], args].concat(), "");
    assert_ne!(finished.code, Some(0), "{finished:?} {}", folder.display());
    finished.stderr
}

#[test]
fn store_that_cannot_be_opened_is_explained() {
    let place = StoreFolder::new("stored_refused");
    let other = file(&place.folder, "other.key", &"o".repeat(32), 0o600);
    let stderr = refused(&place.folder, &["--store", &place.store]);
    assert!(stderr.contains("needs a state key") && stderr.contains("--state-key"), "{stderr}");
    let (running, _) = place.serve(&["--no-config"]);
    let stderr = refused(&place.folder, &["--store", &place.store, "--state-key", &place.key]);
    assert!(stderr.contains("in use by another process"), "{stderr}");
    kill(running);
    let stderr = refused(&place.folder, &["--store", &place.store, "--state-key", &other]);
    assert!(stderr.contains("another state key"), "{stderr}");
    let stderr = refused(&place.folder, &["--store", "sqlite:a.db", "--state-key", &place.key]);
    assert!(stderr.contains("memory, file:PATH or a redis:// URL"), "{stderr}");
}

#[test]
fn sessions_of_a_running_hub_are_listed_shown_and_ended() {
    let place = StoreFolder::new("stored_listed");
    file(&place.folder, "trunkline.toml", "[commands.hello]\nargv = [\"echo\", \"hello\"]\n", 0o600);
    let socket = place.folder.join("admin.sock");
    let socket = ["--admin-socket", socket.to_str().unwrap()];
    let (running, address) = place.serve(&socket);
    let (kept, ended) = (StoredSession::open(address), StoredSession::open(address));
    let level = legacy(3, "logging/setLevel", json!({ "level": "alert" }));
    assert_eq!(kept.post(address, &level).status, 200);
    kill(running);
    // Sessions that no client has used since the start are listed too.
    let (_running, address) = place.serve(&socket);
    let sessions = |args: &[&str]| run_in(&[&["sessions"], args, &socket].concat(), &place.folder);
    let listed = sessions(&["--json"]);
    let report: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{listed:?}"));
    assert_eq!(
        (&report["store"], report["sessions"].as_array().unwrap().len()),
        (&json!("file"), 2),
        "{report}"
    );
    assert!(!listed.stdout.contains(&kept.id), "no id is shown whole: {report}");
    let [kept_id, ended_id] = [kept.id.split_at(8).0, ended.id.split_at(8).0];
    let shown = sessions(&[kept_id]);
    for part in [kept_id, "anonymous", "test 1", "2025-11-25", "alert"] {
        assert!(shown.stdout.contains(part), "{part} is not in {shown:?}");
    }
    let table = sessions(&[]);
    assert!(table.stdout.contains(kept_id) && table.stdout.contains(ended_id), "{table:?}");
    assert_eq!(sessions(&[ended_id, "--end"]).code, Some(0));
    assert_ne!(sessions(&[ended_id, "--end"]).code, Some(0), "a session ends once");
    assert_eq!(ended.post(address, &legacy(4, "ping", json!({}))).status, 404);
    assert_eq!(kept.post(address, &legacy(4, "ping", json!({}))).status, 200);
}
