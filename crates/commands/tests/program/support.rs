//! The example as a process, and folders for tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use trunkline_commands::{Policy, Program};
use trunkline_server::{Host, HostOptions};

use crate::tree;

/// Long enough for any machine, and only ever waited for by a test that fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "the programs are what is tested")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Builds the examples and returns where one of them is.
pub(crate) fn example(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let arguments = ["build", "--quiet", "--package", "trunkline-commands", "--examples"];
        let built = command(env!("CARGO")).args(arguments).status().unwrap();
        assert!(built.success(), "the examples do not build");
        let here = std::env::current_exe().unwrap();
        here.ancestors().nth(2).unwrap().join("examples")
    });
    let program = folder.join(name);
    assert!(program.exists(), "{} is not where cargo puts examples", program.display());
    program
}

pub(crate) fn depot() -> PathBuf {
    example("depot")
}

/// The example's commands, run by its executable.
pub(crate) fn program() -> Program {
    Program::new(tree::command()).executable(depot()).policy(Policy::golem())
}

pub(crate) fn host(program: &Program) -> Host {
    program.server().unwrap().host(HostOptions::default()).unwrap()
}

/// A folder of one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    // What an earlier run left must not be taken for ours.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

/// A process that ends with the test.
pub(crate) struct RunningProgram {
    pub(crate) child: Child,
    pub(crate) stderr: BufReader<std::process::ChildStderr>,
}

impl RunningProgram {
    /// Starts a program in a folder.
    pub(crate) fn start(mut command: Command, folder: &Path) -> Self {
        let command = command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits for a line of standard error that has a text in it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).unwrap();
            assert!(read > 0, "the program ended and did not say {text}");
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the store that the example's commands use, and returns its URL.
pub(crate) fn store() -> (RunningProgram, String) {
    let mut command = command(depot());
    command.args(["store", "0"]);
    let mut running = RunningProgram::start(command, Path::new("."));
    let mut line = String::new();
    BufReader::new(running.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (running, format!("http://{}", line.trim_end()))
}

/// Starts the example as a server on a free port.
pub(crate) fn serve(folder: &Path, arguments: &[&str]) -> (RunningProgram, SocketAddr) {
    let mut command = command(depot());
    command.args(arguments).arg("--serve=0");
    let mut running = RunningProgram::start(command, folder);
    let line = running.wait_for("MCP server on http://");
    let address = line.trim_end().trim_start_matches("MCP server on http://").trim_end_matches("/mcp");
    (running, address.parse().unwrap())
}

/// What came back for a request: status, headers in lower case, body.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Reads the one event that the body is.
    pub(crate) fn event(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "{self:?}");
        let mut data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let event = serde_json::from_str(data.next().expect("an event")).unwrap();
        assert!(data.next().is_none(), "one event for each answer: {self:?}");
        event
    }
}

/// Posts a message the way that curl does.
pub(crate) fn post(address: SocketAddr, headers: &[(&str, &str)], message: &Value) -> HttpAnswer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let body = message.to_string();
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nUser-Agent: curl/8.5.0\r\n");
    if headers.iter().all(|(name, _)| *name != "Accept") {
        head += "Accept: */*\r\n";
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!(
        "Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    HttpAnswer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}
