use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::task::{Context, Poll};

use rustix::process::{Pid, Signal};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;

use super::super::census::{Living, MOST_CHILDREN};
use super::super::command::Command;
use super::super::error::{SpawnError, display_name};
use super::super::exit::Exit;
#[cfg(target_os = "linux")]
use super::super::guard;
use super::super::{environment, find};
use super::exited::Exited;
use super::{Input, Started};

/// Our end of a pipe that a child writes to.
pub type Reader = pipe::Receiver;

/// Our end of a pipe that a child reads from.
pub type Writer = pipe::Sender;

/// A child that leads a process group of its own.
///
/// Its process id stays taken until [`Child::reap`], so a signal for the group can never reach a stranger. A child that
/// is dropped before is killed with its group.
#[derive(Debug)]
pub(in super::super) struct Child {
    process: std::process::Child,
    leader: Pid,
    exited: Exited,
    exit: Option<Exit>,
    #[cfg(target_os = "linux")]
    entry: guard::Entry,
    runtime: Handle,
    /// Given up last, when everything above is.
    living: Option<Living>,
}

/// Starts a program in a process group of its own.
pub(in super::super) fn start(command: &Command, input: Input) -> Result<Started, SpawnError> {
    let program = || display_name(&command.program);
    let Ok(runtime) = Handle::try_current() else { return Err(SpawnError::NoRuntime { program: program() }) };
    let Some(living) = Living::enter() else {
        return Err(SpawnError::TooMany { program: program(), limit: MOST_CHILDREN });
    };
    let environment = environment::of(command);
    let Some(file) = find::program(&command.program, environment.get(std::ffi::OsStr::new("PATH"))) else {
        return Err(SpawnError::NotFound { program: program() });
    };
    let failed = |source| SpawnError::Failed { program: program(), source };
    let mut pipes = Pipes::new(input).map_err(failed)?;
    #[cfg(target_os = "linux")]
    let entry = guard::Entry::new([&pipes.stdout, &pipes.stderr])
        .map_err(|source| SpawnError::Unguarded { program: program(), source })?;
    let process = spawn(command, file, &environment, &mut pipes).map_err(|error| explain(command, error))?;
    // Nothing after this may fail without the child being ended.
    let mut process = Unowned(Some(process));
    let leader = process.id().ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
    #[cfg(target_os = "linux")]
    entry.set_group(leader);
    let exited = Exited::new(leader).map_err(failed)?;
    let stdin = pipes.stdin.map(Writer::from_owned_fd_unchecked).transpose().map_err(failed)?;
    let stdout = Reader::from_owned_fd_unchecked(pipes.stdout).map_err(failed)?;
    let stderr = Reader::from_owned_fd_unchecked(pipes.stderr).map_err(failed)?;
    let Some(process) = process.0.take() else { return Err(failed(io::ErrorKind::InvalidData.into())) };
    let child = Child {
        process,
        leader,
        exited,
        exit: None,
        #[cfg(target_os = "linux")]
        entry,
        runtime,
        living: Some(living),
    };
    Ok(Started { child, stdin, stdout, stderr })
}

impl Child {
    /// Returns the process id of the leader.
    pub(in super::super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the runtime that the child was started in.
    pub(in super::super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Polls until the leader has ended; it is still to be reaped then.
    pub(in super::super) fn poll_exited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exit.is_some() { Poll::Ready(()) } else { self.exited.poll(cx) }
    }

    /// Asks the group, and those of the leader's descendants that left it, to end.
    pub(in super::super) fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Ends the group, and those of the leader's descendants that left it.
    pub(in super::super) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&mut self, signal: Signal) {
        if self.exit.is_some() {
            return;
        }
        // Descendants are found through their parents, so they have to be known before any of those ends.
        #[cfg(target_os = "linux")]
        let strays = super::tree::strays(self.leader);
        signal_group(self.leader, signal);
        #[cfg(target_os = "linux")]
        for stray in strays {
            stray.signal(signal);
        }
    }

    /// Ends whoever got away with one of the child's outputs: by leaving its group, after its parents had ended.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(clippy::unused_self, reason = "only Linux tells who has a pipe")
    )]
    pub(in super::super) fn hunt(&self) {
        #[cfg(target_os = "linux")]
        for stray in super::tree::holders(self.entry.pipes()) {
            stray.signal(Signal::KILL);
        }
    }

    /// Ends what is left of the group and takes the leader's exit; it has to have ended, else this waits for it.
    pub(in super::super) fn reap(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        signal_group(self.leader, Signal::KILL);
        // The number of the group is free for others as soon as the leader is reaped, so the guard forgets it before.
        #[cfg(target_os = "linux")]
        self.entry.forget_group();
        let exit = self.process.wait().map_or(Exit::Unknown, Exit::from);
        self.exit = Some(exit);
        self.living = None;
        exit
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.exit.is_some() {
            return;
        }
        self.kill();
        if !matches!(self.exited.now(), Ok(false)) {
            self.reap();
            return;
        }
        signal_group(self.leader, Signal::KILL);
        #[cfg(target_os = "linux")]
        self.entry.forget_group();
        reap_later(self.leader, self.living.take());
    }
}

/// The stack of a thread that only waits.
///
/// The allocator runs on it too, and that is chosen by the program: the first allocation of a thread overflowed 64 KiB with
/// jemalloc built without optimization.
const REAPER_STACK: usize = 256 * 1024;

/// Reaps a process that was killed, from a thread since there may be no runtime any more that could wait for it.
fn reap_later(leader: Pid, living: Option<Living>) {
    let wait = move || {
        let _ = rustix::process::waitpid(Some(leader), rustix::process::WaitOptions::empty());
        drop(living);
    };
    // Without a thread the process stays a zombie until we end; it does nothing any more.
    let _ = std::thread::Builder::new().name("reaper".to_owned()).stack_size(REAPER_STACK).spawn(wait);
}

fn signal_group(leader: Pid, signal: Signal) {
    // An error means that nobody is there to be signalled, or that nobody is who may be.
    let _ = rustix::process::kill_process_group(leader, signal);
}

/// A process that is killed unless somebody takes it.
struct Unowned(Option<std::process::Child>);

impl Unowned {
    fn id(&self) -> Option<Pid> {
        self.0.as_ref().map(Pid::from_child)
    }
}

impl Drop for Unowned {
    fn drop(&mut self) {
        if let Some(mut process) = self.0.take() {
            signal_group(Pid::from_child(&process), Signal::KILL);
            let _ = process.wait();
        }
    }
}

/// Our ends of a child's pipes, and the child's ends until it has them.
struct Pipes {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    theirs: [Stdio; 3],
}

impl Pipes {
    fn new(input: Input) -> io::Result<Self> {
        let (stdin, their_stdin) = match input {
            Input::Empty => (None, Stdio::null()),
            Input::Pipe => {
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
            theirs: [their_stdin, their_stdout.into(), their_stderr.into()],
        })
    }
}

/// Makes our end of a pipe one that tokio can wait for; the other end keeps its own mode.
fn non_blocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::NONBLOCK)?;
    Ok(fd)
}

#[allow(clippy::disallowed_methods, reason = "this is the place that starts processes")]
fn spawn(
    command: &Command,
    file: PathBuf,
    environment: &std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString>,
    pipes: &mut Pipes,
) -> io::Result<std::process::Child> {
    let mut process = std::process::Command::new(file);
    process.arg0(&command.program).args(&command.arguments).env_clear().envs(environment).process_group(0);
    if let Some(directory) = &command.directory {
        process.current_dir(directory);
    }
    let [stdin, stdout, stderr] =
        std::mem::replace(&mut pipes.theirs, std::array::from_fn(|_| Stdio::null()));
    process.stdin(stdin).stdout(stdout).stderr(stderr);
    #[cfg(target_os = "linux")]
    guard::seal_descriptors();
    process.spawn()
}

/// Says what of a command the operating system did not like.
fn explain(command: &Command, source: io::Error) -> SpawnError {
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
