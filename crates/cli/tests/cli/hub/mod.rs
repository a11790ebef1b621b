//! The hub as its users meet it: a folder with a file, servers that are real processes, and clients that work meanwhile.

mod admin;
mod audit;
mod console;
mod console_control;
mod hostile_texts;
mod invalid_config;
mod programs;
mod readiness_probe;
mod record;
mod reload;
mod smoke;
mod trust;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bare_client::{get, post};
use crate::messages::{call, modern};
use crate::process::{DEADLINE, RunningCommand, file, folder, run_in};

const OWN_BINARY: &str = env!("CARGO_BIN_EXE_trunkline");

/// A folder with a file, and the hub that serves it.
struct HubFolder {
    folder: PathBuf,
    /// The name of the file.
    file: &'static str,
}

impl HubFolder {
    fn new(test: &str, file: &'static str, text: &str) -> Self {
        let place = Self { folder: folder(test), file };
        place.write(text);
        place
    }

    /// Replaces the file in one step, as editors do.
    fn write(&self, text: &str) {
        let next = file(&self.folder, "next", text, 0o600);
        std::fs::rename(next, self.path()).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.folder.join(self.file)
    }

    /// Starts the hub in the folder, without a flag that selects a server, and waits until it listens.
    #[track_caller]
    fn serve(&self, args: &[&str]) -> (RunningCommand, SocketAddr) {
        let port_file = self.folder.join("address");
        let fixed = ["serve", "--trust", "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
        let mut running = RunningCommand::start_in(&[&fixed[..], args].concat(), &self.folder);
        running.wait_for("listening on http://127.0.0.1:");
        let address = std::fs::read_to_string(&port_file).unwrap().trim_end().parse().unwrap();
        (running, address)
    }

    /// Where the hub of the folder is managed, in a folder that only this test uses.
    fn socket(&self) -> PathBuf {
        self.folder.join("admin.sock")
    }
}

/// A server that is this command with a built-in server.
fn builtin(name: &str) -> Value {
    json!({ "command": OWN_BINARY, "args": ["serve", "--stdio", "--no-config", "--builtin", name] })
}

/// A file with servers as clients write it.
fn mcp_json(servers: &[(&str, Value)]) -> String {
    let servers: serde_json::Map<String, Value> =
        servers.iter().map(|(name, server)| ((*name).to_owned(), server.clone())).collect();
    json!({ "mcpServers": servers }).to_string()
}

/// Returns the names of the tools that are listed.
#[track_caller]
fn tools(address: SocketAddr) -> Vec<String> {
    let listed = post(address, &modern(1, "tools/list", json!({})), &[]).json();
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Calls a tool and returns the answer.
#[track_caller]
fn called(address: SocketAddr, tool: &str, arguments: Value) -> Value {
    post(address, &modern(1, "tools/call", call(tool, arguments)), &[]).json()
}

/// Calls the tool `echo` of a server and returns its text.
#[track_caller]
fn echoed(address: SocketAddr, tool: &str, message: &str) -> String {
    let answer = called(address, tool, json!({ "message": message }));
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[track_caller]
fn readiness(address: SocketAddr) -> (u16, Value) {
    let ready = get(address, "/readyz", &[]);
    (ready.status, ready.json())
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < DEADLINE * 3, "it never came to this: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Returns the processes that a process has started and that still run.
fn children(parent: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
}

/// Finds the process that runs for a server, by a word of its command line.
fn process_with(parent: u32, word: &str) -> Option<i32> {
    children(parent).into_iter().find(|id| command_line(*id).contains(word))
}

fn command_line(id: i32) -> String {
    let bytes = std::fs::read(Path::new("/proc").join(id.to_string()).join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Reports whether a process has ended; a zombie counts as ended.
fn is_gone(id: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.is_empty() || status.contains("State:\tZ")
}
