//! Starting the command, and waiting for what it does with a deadline.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Long enough for any machine, and only ever waited for by a test that fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

#[expect(
    clippy::disallowed_methods,
    reason = "the command is what is tested, and these tests start nothing else"
)]
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(args);
    // What a hub puts there is not to be found by hubs of the person who runs the tests.
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Variables that lead to what the person has who runs the tests.
const HOME_VARIABLES: &[&str] =
    &["CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"];

/// A folder of one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    // What an earlier run left must not be taken for ours.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes a file with the given rights and returns its path as an argument.
pub(crate) fn file(folder: &Path, name: &str, content: &str, mode: u32) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What a process left behind.
#[derive(Debug)]
pub(crate) struct FinishedCommand {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command with some input to its end.
#[track_caller]
pub(crate) fn run(args: &[&str], input: &str) -> FinishedCommand {
    let mut running = RunningCommand::start(args);
    running.write(input);
    running.finish()
}

/// Runs the command with variables in its environment and some input to its end.
#[track_caller]
pub(crate) fn run_with(args: &[&str], variables: &[(&str, &str)], input: &str) -> FinishedCommand {
    let mut running = RunningCommand::start_with(args, variables);
    running.write(input);
    running.finish()
}

/// Runs the command in a folder to its end, without input.
#[track_caller]
pub(crate) fn run_in(args: &[&str], folder: &Path) -> FinishedCommand {
    RunningCommand::start_in(args, folder).finish()
}

/// Runs the command in a folder that is also the home folder, with further variables, to its end. It finds nothing of the
/// person who runs the tests.
#[track_caller]
pub(crate) fn run_at_home(args: &[&str], folder: &Path, variables: &[(&str, &str)]) -> FinishedCommand {
    RunningCommand::start_at_home(args, folder, variables).finish()
}

/// Runs the command with a file as input and another as output.
#[track_caller]
pub(crate) fn run_with_files(args: &[&str], input: &Path, output: &Path) -> FinishedCommand {
    let mut command = command(args);
    command.stdin(std::fs::File::open(input).unwrap()).stdout(std::fs::File::create(output).unwrap());
    let mut finished = RunningCommand::spawn(command).finish();
    finished.stdout = std::fs::read_to_string(output).unwrap();
    finished
}

/// Runs the command in a folder, and returns what a person would see of it: both outputs as they come, in one text.
///
/// The command finds itself as `trunkline`, and the folder above as the home folder.
pub(crate) fn run_together<A: AsRef<std::ffi::OsStr>>(args: &[A], folder: &Path) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_trunkline")).parent().unwrap();
    let path = std::env::join_paths([own, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let seen = folder.join("seen");
    let file = std::fs::File::create(&seen).unwrap();
    let mut command = command(&[]);
    command.args(args).current_dir(folder).env("PATH", path).env("HOME", folder.parent().unwrap());
    for variable in HOME_VARIABLES {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let _ = command.status().unwrap();
    std::fs::read_to_string(seen).unwrap()
}

/// A process that runs until the test lets go of it.
pub(crate) struct RunningCommand {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// Lines of standard error that a test has waited past.
    stderr_seen: String,
    /// The file to which a ready server writes its address.
    pub(crate) port_file: PathBuf,
}

impl RunningCommand {
    #[track_caller]
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// Starts the command with variables in its environment.
    #[track_caller]
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(args);
        command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::spawn(command)
    }

    /// Starts the command in a folder.
    #[track_caller]
    pub(crate) fn start_in(args: &[&str], folder: &Path) -> Self {
        let mut command = command(args);
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::spawn(command)
    }

    /// Starts the command in a folder that is also the home folder.
    #[track_caller]
    pub(crate) fn start_at_home(args: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = command(args);
        for variable in HOME_VARIABLES {
            command.env_remove(variable);
        }
        command.env("HOME", folder).envs(variables.iter().copied()).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::spawn(command)
    }

    #[track_caller]
    fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map_or_else(|| channel().1, lines_of);
        let stderr = lines_of(child.stderr.take().unwrap());
        Self { child, stdin, stdout, stderr, stderr_seen: String::new(), port_file: PathBuf::new() }
    }

    /// Starts a server on a free port and waits until it is ready.
    #[track_caller]
    pub(crate) fn serve(test: &str, args: &[&str]) -> (Self, SocketAddr) {
        Self::serve_with(test, args, &[])
    }

    /// Starts a server with variables in its environment.
    #[track_caller]
    pub(crate) fn serve_with(test: &str, args: &[&str], variables: &[(&str, &str)]) -> (Self, SocketAddr) {
        Self::ready(test, |fixed| Self::start_with(&[fixed, args].concat(), variables))
    }

    /// Starts a server as a shell does that limits the number of descriptors first.
    #[track_caller]
    #[expect(
        clippy::disallowed_methods,
        reason = "a process of the tests cannot lower this for one child alone"
    )]
    pub(crate) fn serve_with_descriptors(test: &str, limit: &str, args: &[&str]) -> (Self, SocketAddr) {
        Self::ready(test, |fixed| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]);
            shell.arg(env!("CARGO_BIN_EXE_trunkline")).args(fixed).args(args);
            shell.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
            Self::spawn(shell)
        })
    }

    #[track_caller]
    fn ready(test: &str, start: impl FnOnce(&[&str]) -> Self) -> (Self, SocketAddr) {
        let port_file = folder(test).join("address");
        let fixed = ["serve", "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
        let mut running = start(&fixed);
        // In every format, the first line has the address, and it comes after the file was written.
        running.wait_for("127.0.0.1:");
        let address = std::fs::read_to_string(&port_file).unwrap();
        running.port_file = port_file;
        (running, address.trim_end().parse().unwrap())
    }

    #[track_caller]
    pub(crate) fn write(&mut self, input: &str) {
        self.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
    }

    /// Waits for the next line of standard output.
    #[track_caller]
    pub(crate) fn read_line(&self) -> String {
        self.stdout.recv_timeout(DEADLINE).expect("a line of standard output")
    }

    /// Waits for a line of standard error that contains a text, and returns it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            match self.stderr.recv_timeout(DEADLINE) {
                Ok(line) => {
                    self.stderr_seen.push_str(&line);
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => panic!("no `{text}` on standard error, only:\n{}", self.stderr_seen),
            }
        }
    }

    /// Waits until a text has been on standard error, whenever that was.
    #[track_caller]
    pub(crate) fn wait_for_whole(&mut self, text: &str) {
        if !self.stderr_seen.contains(text) {
            self.wait_for(text);
        }
    }

    /// Returns the part of standard error that was read so far.
    pub(crate) fn seen(&self) -> &str {
        &self.stderr_seen
    }

    /// Returns the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the command line, which every user of the machine can read.
    #[cfg(target_os = "linux")]
    pub(crate) fn command_line(&self) -> String {
        let bytes = std::fs::read(format!("/proc/{}/cmdline", self.child.id())).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the input and waits until the process has ended.
    #[track_caller]
    pub(crate) fn finish(mut self) -> FinishedCommand {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits until the process has ended by itself, its input still open.
    #[track_caller]
    pub(crate) fn wait(mut self) -> FinishedCommand {
        // Both streams end when the process does, so that its end is an event and not something to poll for.
        let stdout = rest_of(&self.stdout);
        let stderr = std::mem::take(&mut self.stderr_seen) + &rest_of(&self.stderr);
        FinishedCommand { code: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    receiver
}

#[track_caller]
fn rest_of(lines: &Receiver<String>) -> String {
    let mut rest = String::new();
    loop {
        match lines.recv_timeout(DEADLINE) {
            Ok(line) => rest.push_str(&line),
            Err(RecvTimeoutError::Disconnected) => return rest,
            Err(RecvTimeoutError::Timeout) => panic!("the process has not ended; so far:\n{rest}"),
        }
    }
}
