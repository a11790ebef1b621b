use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::task::{Context, Poll};

use rustix::process::{Pid, Signal};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;

use super::super::child_counter::{ChildPermit, MAX_CHILDREN};
use super::super::command::Command;
use super::super::error::{SpawnError, display_name};
use super::super::exit::ProcessExit;
#[cfg(target_os = "linux")]
use super::super::reaper;
use super::super::{environment, find};
use super::exit_watcher::ExitWatcher;
use super::{StartedChild, StdinMode};

/// Our end of a pipe that a child writes to.
pub type PipeReader = pipe::Receiver;

/// Our end of a pipe that a child reads from.
pub type PipeWriter = pipe::Sender;

/// A child that leads a process group of its own.
///
/// Its process id stays reserved until [`ChildProcess::reap`], so a signal for the group can never reach an unrelated
/// process. A child that is dropped before is killed with its group.
#[derive(Debug)]
pub(in super::super) struct ChildProcess {
    process: std::process::Child,
    leader: Pid,
    exited: ExitWatcher,
    exit: Option<ProcessExit>,
    #[cfg(target_os = "linux")]
    group_slot: reaper::GroupSlot,
    runtime: Handle,
    /// Released last, after all fields above.
    permit: Option<ChildPermit>,
}

/// Starts a program in a process group of its own.
pub(in super::super) fn start(command: &Command, input: StdinMode) -> Result<StartedChild, SpawnError> {
    let program = || display_name(&command.program);
    let Ok(runtime) = Handle::try_current() else { return Err(SpawnError::NoRuntime { program: program() }) };
    let Some(living) = ChildPermit::acquire() else {
        return Err(SpawnError::TooMany { program: program(), limit: MAX_CHILDREN });
    };
    let environment = environment::child_environment(command);
    let Some(file) = find::program(&command.program, environment.get(std::ffi::OsStr::new("PATH"))) else {
        return Err(SpawnError::NotFound { program: program() });
    };
    let failed = |source| SpawnError::Failed { program: program(), source };
    let mut pipes = PipeEnds::new(input).map_err(failed)?;
    #[cfg(target_os = "linux")]
    let entry = reaper::GroupSlot::new([&pipes.stdout, &pipes.stderr])
        .map_err(|source| SpawnError::ReaperFailed { program: program(), source })?;
    let process =
        spawn(command, file, &environment, &mut pipes).map_err(|error| spawn_error(command, error))?;
    // If a later step fails, the child is killed.
    let mut process = KillOnDrop(Some(process));
    let leader = process.id().ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
    #[cfg(target_os = "linux")]
    entry.set_group(leader);
    let exited = ExitWatcher::new(leader).map_err(failed)?;
    let stdin = pipes.stdin.map(PipeWriter::from_owned_fd_unchecked).transpose().map_err(failed)?;
    let stdout = PipeReader::from_owned_fd_unchecked(pipes.stdout).map_err(failed)?;
    let stderr = PipeReader::from_owned_fd_unchecked(pipes.stderr).map_err(failed)?;
    let Some(process) = process.0.take() else { return Err(failed(io::ErrorKind::InvalidData.into())) };
    let child = ChildProcess {
        process,
        leader,
        exited,
        exit: None,
        #[cfg(target_os = "linux")]
        group_slot: entry,
        runtime,
        permit: Some(living),
    };
    Ok(StartedChild { child, stdin, stdout, stderr })
}

impl ChildProcess {
    /// Returns the process id of the leader.
    pub(in super::super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the runtime that the child was started in.
    pub(in super::super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Polls until the leader has exited; it is still to be reaped then.
    pub(in super::super) fn poll_exited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exit.is_some() { Poll::Ready(()) } else { self.exited.poll(cx) }
    }

    /// Sends `SIGTERM` to the group, and to those of the leader's descendants that left it.
    pub(in super::super) fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Kills the group, and those of the leader's descendants that left it.
    pub(in super::super) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&mut self, signal: Signal) {
        if self.exit.is_some() {
            return;
        }
        // Descendants are found through their parents, so they are listed before any parent exits.
        #[cfg(target_os = "linux")]
        let strays = super::descendants::strays(self.leader);
        signal_group(self.leader, signal);
        #[cfg(target_os = "linux")]
        for stray in strays {
            stray.signal(signal);
        }
    }

    /// Kills the processes that still hold one of the child's outputs, such as those that left its group after their
    /// parents had exited.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(clippy::unused_self, reason = "only Linux tells who has a pipe")
    )]
    pub(in super::super) fn kill_pipe_holders(&self) {
        #[cfg(target_os = "linux")]
        for stray in super::descendants::pipe_holders(self.group_slot.pipes()) {
            stray.signal(Signal::KILL);
        }
    }

    /// Kills the rest of the group and reaps the leader; if the leader has not exited yet, this blocks until it has.
    pub(in super::super) fn reap(&mut self) -> ProcessExit {
        if let Some(exit) = self.exit {
            return exit;
        }
        signal_group(self.leader, Signal::KILL);
        // The group id may be reused as soon as the leader is reaped, so it is removed from the reaper's table
        // before.
        #[cfg(target_os = "linux")]
        self.group_slot.clear_group();
        let exit = self.process.wait().map_or(ProcessExit::Unknown, ProcessExit::from);
        self.exit = Some(exit);
        self.permit = None;
        exit
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.exit.is_some() {
            return;
        }
        self.kill();
        if !matches!(self.exited.has_exited(), Ok(false)) {
            self.reap();
            return;
        }
        signal_group(self.leader, Signal::KILL);
        #[cfg(target_os = "linux")]
        self.group_slot.clear_group();
        reap_in_thread(self.leader, self.permit.take());
    }
}

/// The stack of a thread that only waits.
///
/// The allocator runs on it too, and that is chosen by the program: the first allocation of a thread overflowed 64 KiB with
/// jemalloc built without optimization.
const REAPER_STACK: usize = 256 * 1024;

/// Reaps a killed process in a thread, since there may be no runtime any more that could wait for it.
fn reap_in_thread(leader: Pid, living: Option<ChildPermit>) {
    let wait = move || {
        let _ = rustix::process::waitpid(Some(leader), rustix::process::WaitOptions::empty());
        drop(living);
    };
    // Without a thread the process stays a zombie until this process exits; it does nothing any more.
    let _ = std::thread::Builder::new().name("reaper".to_owned()).stack_size(REAPER_STACK).spawn(wait);
}

fn signal_group(leader: Pid, signal: Signal) {
    // An error means that the group is empty, or that this process may signal none of its members.
    let _ = rustix::process::kill_process_group(leader, signal);
}

/// A process that is killed on drop, unless it was taken out.
struct KillOnDrop(Option<std::process::Child>);

impl KillOnDrop {
    fn id(&self) -> Option<Pid> {
        self.0.as_ref().map(Pid::from_child)
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(mut process) = self.0.take() {
            signal_group(Pid::from_child(&process), Signal::KILL);
            let _ = process.wait();
        }
    }
}

/// Our ends of a child's pipes, and the child's ends until its start.
struct PipeEnds {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    child_ends: [Stdio; 3],
}

impl PipeEnds {
    fn new(input: StdinMode) -> io::Result<Self> {
        let (stdin, their_stdin) = match input {
            StdinMode::Empty => (None, Stdio::null()),
            StdinMode::Pipe => {
                let (theirs, ours) = io::pipe()?;
                (Some(non_blocking(ours.into())?), theirs.into())
            }
        };
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        Ok(Self {
            stdin,
            stdout: non_blocking(stdout.into())?,
            stderr: non_blocking(stderr.into())?,
            child_ends: [their_stdin, their_stdout.into(), their_stderr.into()],
        })
    }
}

/// Sets our end of a pipe to non-blocking, for tokio; the other end keeps its own mode.
fn non_blocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::NONBLOCK)?;
    Ok(fd)
}

#[allow(clippy::disallowed_methods, reason = "this is the place that starts processes")]
fn spawn(
    command: &Command,
    file: PathBuf,
    environment: &std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString>,
    pipes: &mut PipeEnds,
) -> io::Result<std::process::Child> {
    let mut process = std::process::Command::new(file);
    process.arg0(&command.program).args(&command.arguments).env_clear().envs(environment).process_group(0);
    if let Some(directory) = &command.directory {
        process.current_dir(directory);
    }
    let [stdin, stdout, stderr] =
        std::mem::replace(&mut pipes.child_ends, std::array::from_fn(|_| Stdio::null()));
    process.stdin(stdin).stdout(stdout).stderr(stderr);
    #[cfg(target_os = "linux")]
    reaper::seal_descriptors();
    process.spawn()
}

/// Converts an error of the operating system to the specific variant.
fn spawn_error(command: &Command, source: io::Error) -> SpawnError {
    let program = display_name(&command.program);
    if let Some(directory) = command.directory.as_ref().filter(|directory| !directory.is_dir()) {
        return SpawnError::Directory { program, directory: directory.clone() };
    }
    match source.kind() {
        io::ErrorKind::NotFound => SpawnError::NotFound { program },
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { program, source },
        _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            SpawnError::NotExecutable { program, source }
        }
        _ => SpawnError::Failed { program, source },
    }
}
