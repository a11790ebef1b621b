//! What the tests of processes have in common.

use std::future::poll_fn;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::net::unix::pipe::Receiver;
use trunkline_transport::process::{self, GracePeriods, ProcessChannel, ProcessOptions, ServerProcess};
use trunkline_transport::{Channel as _, Command, ReceiveError};

/// A test that takes longer than this hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A shell that runs a script, which is given `$1` and so on.
pub(crate) fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script, "sh"])
}

/// Waits for something that must not take for ever.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

/// A process that a test waits for, with any parent.
pub(crate) struct Watched {
    id: i32,
    descriptor: Receiver,
}

impl Watched {
    /// Watches a process that lives.
    pub(crate) fn new(id: &str) -> Self {
        let id = id.trim().parse().unwrap_or_else(|_| panic!("no process id: {id}"));
        let pid = Pid::from_raw(id).expect("a process id is not zero");
        let descriptor = rustix::process::pidfd_open(pid, PidfdFlags::empty()).expect("the process lives");
        // The descriptor of a process becomes readable at its end; tokio's type for pipes does no more than wait for it.
        Self { id, descriptor: Receiver::from_owned_fd_unchecked(descriptor).unwrap() }
    }

    pub(crate) async fn ended(&self) {
        soon(&format!("the end of process {}", self.id), self.descriptor.readable()).await.unwrap();
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    pub(crate) fn kill(&self) {
        rustix::process::pidfd_send_signal(&self.descriptor, Signal::KILL).unwrap();
    }

    pub(crate) fn is_alive(&self) -> bool {
        rustix::process::pidfd_send_signal(&self.descriptor, Signal::CONT).is_ok()
    }
}

/// Starts a server with graces that a test can wait for.
pub(crate) fn spawn(command: &Command) -> (ProcessChannel, ServerProcess) {
    let grace = GracePeriods {
        after_stdin_close: Duration::from_millis(200),
        after_sigterm: Duration::from_millis(200),
    };
    process::spawn(command, ProcessOptions { grace, ..ProcessOptions::default() }).expect("it starts")
}

/// Receives the next message, as text.
pub(crate) async fn receive(channel: &mut ProcessChannel) -> Option<Result<String, ReceiveError>> {
    let message = soon("a message", poll_fn(|cx| channel.poll_receive(cx))).await?;
    Some(message.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()))
}

/// Sends one message.
pub(crate) async fn send(channel: &mut ProcessChannel, message: &str) {
    channel.send(message);
    soon("a flush", poll_fn(|cx| channel.poll_flush(cx))).await.unwrap();
}

/// Receives `{"pids":[…]}` and watches those processes.
pub(crate) async fn receive_watched(channel: &mut ProcessChannel) -> Vec<Watched> {
    let message = receive(channel).await.expect("a message").expect("a message");
    let list = message.split(['[', ']']).nth(1).expect("a list of process ids");
    list.split(',').map(Watched::new).collect()
}

/// Runs one of the tests that are ignored otherwise in a process of its own, and gives what it printed.
pub(crate) fn alone(test: &str) -> String {
    let output = itself(test).stderr(Stdio::piped()).output().expect("the test program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // A name that no test has runs none, and that would be a success too.
    assert!(text.contains("1 passed"), "no test is named {test}: {text}");
    text
}

/// This test program, as one that runs a test that is ignored otherwise.
#[allow(clippy::disallowed_methods, reason = "the process that is started is this test itself")]
pub(crate) fn itself(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Lists the processes that have a text among their arguments.
pub(crate) fn processes_with(argument: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if id.parse::<u32>().is_ok() && line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
        {
            found.push(id);
        }
    }
    found
}
