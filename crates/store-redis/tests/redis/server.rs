//! Redis servers on free ports and in folders of their own, which end with their value.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

/// How long a server may take to accept connections.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// Installs Redis from the packages of the system if it is not there.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let is_there = || succeeds("redis-server", &["--version"]) && succeeds("redis-cli", &["--version"]);
        if is_there() {
            return;
        }
        // Test binaries run at the same time, and the package manager refuses a second installation.
        let path = std::env::temp_dir().join("trunkline-tests-install.lock");
        let lock = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        if is_there() {
            return;
        }
        let install =
            ["install", "--yes", "--quiet", "--no-install-recommends", "redis-server", "redis-tools"];
        let is_installed = succeeds("apt-get", &install)
            || (succeeds("apt-get", &["update", "--quiet"]) && succeeds("apt-get", &install));
        assert!(
            is_installed,
            "these tests need redis-server: install it, for example with `apt-get install redis-server`"
        );
    });
}

#[expect(clippy::disallowed_methods, reason = "the command ends by itself")]
fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A running server, which is killed when this is dropped.
pub(crate) struct RedisProcess {
    child: Child,
    pub(crate) port: u16,
    arguments: Vec<String>,
    pub(crate) folder: tempfile::TempDir,
}

impl RedisProcess {
    /// Starts a server that stores nothing on disk.
    pub(crate) fn start() -> Self {
        Self::start_with(&["--save", "", "--appendonly", "no"])
    }

    /// Starts a server with these arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        Self::start_on(free_port(), |port| {
            let port = port.to_string();
            ["--port".to_owned(), port].into_iter().chain(arguments.clone()).collect()
        })
    }

    /// Starts a server that listens on this port, with the arguments for it.
    pub(crate) fn start_on(port: u16, arguments: impl Fn(u16) -> Vec<String>) -> Self {
        install();
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(port);
        let child = spawn(folder.path(), &arguments);
        let mut server = Self { child, port, arguments, folder };
        server.wait_until_open();
        server
    }

    fn wait_until_open(&mut self) {
        let start = Instant::now();
        while !is_open(self.port) {
            assert!(start.elapsed() < START_DEADLINE, "redis-server {:?} does not start", self.arguments);
            if let Some(status) = self.child.try_wait().unwrap() {
                let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("redis-server {:?} ended with {status}:\n{log}", self.arguments);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a command to a server without TLS and password, and returns what it answers.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        command(self.port, words)
    }

    /// Ends the server without notice.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again after it was killed, on what it has stored.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.folder.path(), &self.arguments);
        self.wait_until_open();
    }

    /// Stops the server from running, so that it accepts connections and answers nothing.
    pub(crate) fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the server is killed when its value is dropped")]
fn spawn(folder: &Path, arguments: &[String]) -> Child {
    let log = std::fs::File::create(folder.join("log")).unwrap();
    // A file of arguments comes first, as a sentinel has one.
    Command::new("redis-server")
        .args(arguments)
        .args(["--bind", "127.0.0.1", "--dir"])
        .arg(folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Reports whether a server accepts connections and has read what it stored.
fn is_open(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else { return false };
    let mut answer = [0; 64];
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    // One with TLS or a password answers otherwise, or not at all.
    let read = stream.write_all(b"PING\r\n").and_then(|()| stream.read(&mut answer));
    !read.is_ok_and(|count| answer[..count].starts_with(b"-LOADING"))
}

/// Sends a command as RESP, and returns the answer as it comes.
fn command(port: u16, words: &[&str]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    // The answer to this comes last. Sentinel knows no QUIT.
    request.push_str("*2\r\n$4\r\nPING\r\n$4\r\nlast\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let end = b"$4\r\nlast\r\n";
    while !answer.ends_with(end) {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "the connection ended: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..count]);
    }
    answer.truncate(answer.len() - end.len());
    String::from_utf8_lossy(&answer).trim_end().to_owned()
}
