//! A server in a separate process, to measure its memory: this test program, started once more.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use trunkline_server::http::{HttpServerOptions, serve as serve_http};
use trunkline_server::{Context, HostOptions, ServerLimits, ServerTransport as _, Tool, stdio};

use crate::service::{DEADLINE, server};

/// Selects the role of the process; absent, it is a test program.
const ROLE: &str = "TRUNKLINE_HOSTILE_CHILD";

/// The memory budgets of a server with tight limits.
pub(crate) const TIGHT: usize = 16 << 20;

/// How long the child waits for calls that run when its input ends.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// A server in another process; it is ended when this value goes.
pub(crate) struct Process {
    child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a server on its standard input and output.
    pub(crate) fn stdio() -> Self {
        Self::start("stdio")
    }

    /// Starts a server that listens, and returns its address.
    pub(crate) fn http() -> (Self, std::net::SocketAddr) {
        Self::listening("http")
    }

    /// Starts a server that listens with small budgets for unread data and for requests: [`TIGHT`].
    pub(crate) fn tight() -> (Self, std::net::SocketAddr) {
        Self::listening("tight")
    }

    fn listening(role: &str) -> (Self, std::net::SocketAddr) {
        let mut process = Self::start(role);
        let line = process.line_with("listening on ");
        let address = line.rsplit(' ').next().and_then(|text| text.trim().parse().ok());
        (process, address.unwrap_or_else(|| panic!("no address in {line}")))
    }

    #[allow(clippy::disallowed_methods, reason = "the process that is started is this test itself")]
    fn start(role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "child::serve", "--ignored", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test program starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output }
    }

    /// Reads lines up to one with a text; output of the test program before it serves is skipped.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let output = self.output.as_mut().expect("its output is ours");
        loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).expect("readable") > 0, "it ended before it said `{text}`");
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn resident_bytes(&self) -> usize {
        trunkline_testing::resident_bytes(self.child.id()).expect("it lives")
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        trunkline_testing::peak_bytes(self.child.id()).expect("it lives")
    }

    /// Waits for the process to end by itself; reports whether it did so without an error.
    pub(crate) fn ended(&mut self) -> bool {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status.success();
            }
            assert!(started.elapsed() < DEADLINE, "the process does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Notifies every subscriber of many changes at once, each time it is called.
fn publish() -> Tool {
    Tool::new("publish").run(|context: Context| async move {
        let server = context.server().expect("a server");
        for n in 0..10 {
            server.notify_updated(format!("test://page/{n}/{}", "p".repeat(8000)));
        }
        "published"
    })
}

#[test]
#[ignore = "serves only as the process that other tests start"]
fn serve() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let gate = Arc::new(Semaphore::new(0));
        let mut limits = ServerLimits::default();
        if role == "tight" {
            (limits.unread_bytes, limits.request_memory_bytes) = (TIGHT, TIGHT);
        }
        let options = HostOptions { limits, ..HostOptions::default() };
        let host = server(&gate).with(publish()).host(options).unwrap();
        if role == "stdio" {
            return stdio().grace(LAST_ANSWERS).serve(host).await.unwrap();
        }
        // With small buffers in the kernel, what is not read stays with the server soon, and is measured.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(32 * 1024).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1024).unwrap();
        println!("listening on {}", listener.local_addr().unwrap());
        let endpoint = host.http_service(HttpServerOptions::default());
        serve_http(listener, &endpoint, endpoint.clone(), DEADLINE).await.unwrap();
    });
}
