//! A server that is killed, and the sessions that are there when it comes back.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Long enough for any machine, and only ever waited for by a test that fails.
const DEADLINE: Duration = Duration::from_secs(20);

struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    #[expect(
        clippy::disallowed_methods,
        reason = "the example is what is tested, and nothing else is started"
    )]
    fn start(file: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline-example-sqlite"))
            .args(["127.0.0.1:0".as_ref(), file.as_os_str()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
        Self { address: address.parse().unwrap(), child }
    }

    /// Ends it without a warning.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a request and returns its status, the id of the session that the response names, and its body.
    fn send(&self, method: &str, session: Option<&str>, body: &str) -> (u16, Option<String>, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let (host, length) = (self.address, body.len());
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{session}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).map(str::to_owned);
        (status, id, body.to_owned())
    }

    fn call(&self, session: &str, method: &str, params: &Value) -> (u16, Value) {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, _, body) = self.send("POST", Some(session), &message.to_string());
        (status, serde_json::from_str(&body).unwrap_or_default())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn session_survives_a_killed_and_restarted_server() {
    let folder = std::env::temp_dir().join(format!("trunkline-restart-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("sessions.db");

    let first = Running::start(&file);
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": { "roots": {} }, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
    let (status, id, _) = first.send("POST", None, &hello);
    assert_eq!(status, 200);
    let id = id.expect("a session");
    let (_, other, _) = first.send("POST", None, &hello);
    let other = other.expect("another session");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(first.send("POST", Some(&id), &ready).0, 202);
    assert_eq!(first.call(&id, "sqlite_no_method", &json!({})).1["error"]["code"], -32601);
    first.kill();

    let second = Running::start(&file);
    let (status, listed) = second.call(&id, "tools/list", &json!({}));
    assert_eq!((status, listed["result"]["tools"].as_array().map(Vec::len)), (200, Some(2)), "{listed}");
    let open = json!({ "name": "sqlite_open", "arguments": {} });
    assert!(second.call(&id, "tools/call", &open).1["result"]["structuredContent"]["handle"].is_string());
    let query = json!({ "name": "sqlite_query", "arguments": { "sql": "select 1 as one" } });
    let rows = second.call(&id, "tools/call", &query).1["result"]["structuredContent"]["rows"].take();
    assert_eq!(rows, json!([{ "one": 1 }]), "the session keeps what it opened after the restart");
    // What its client ended stays ended, whatever happens to the server.
    assert_eq!(second.send("DELETE", Some(&other), "").0, 204);
    assert_eq!(second.call(&"0".repeat(32), "ping", &json!({})).0, 404, "an id that nobody was given");
    second.kill();

    let third = Running::start(&file);
    assert_eq!(
        third.call(&id, "ping", &json!({})),
        (200, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))
    );
    assert_eq!(third.call(&other, "ping", &json!({})).0, 404);
    third.kill();
    std::fs::remove_dir_all(folder).unwrap();
}
