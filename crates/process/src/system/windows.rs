use std::io;
use std::process::Stdio;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use super::super::child_counter::{ChildPermit, MAX_CHILDREN};
use super::super::command::Command;
use super::super::error::{SpawnError, display_name};
use super::super::exit::ProcessExit;
use super::super::{environment, find};
use super::{StartedChild, StdinMode};

/// Our end of a pipe that a child writes to; tokio has a type for each of the two outputs.
#[derive(Debug)]
pub enum PipeReader {
    /// Of standard output.
    Stdout(tokio::process::ChildStdout),
    /// Of standard error.
    Stderr(tokio::process::ChildStderr),
}

/// Our end of a pipe that a child reads from.
pub type PipeWriter = tokio::process::ChildStdin;

/// A child process. Its descendants are not tracked.
#[derive(Debug)]
pub(in super::super) struct ChildProcess {
    process: tokio::process::Child,
    id: u32,
    exit: Option<ProcessExit>,
    runtime: Handle,
    _permit: ChildPermit,
}

/// Starts a program.
pub(in super::super) fn start(command: &Command, input: StdinMode) -> Result<StartedChild, SpawnError> {
    let program = || display_name(&command.program);
    let Ok(runtime) = Handle::try_current() else { return Err(SpawnError::NoRuntime { program: program() }) };
    let Some(permit) = ChildPermit::acquire() else {
        return Err(SpawnError::TooMany { program: program(), limit: MAX_CHILDREN });
    };
    let environment = environment::child_environment(command);
    let path = environment.iter().find(|(name, _)| name.eq_ignore_ascii_case("PATH")).map(|(_, path)| path);
    let Some(file) = find::program(&command.program, path) else {
        return Err(SpawnError::NotFound { program: program() });
    };
    let mut process = tokio::process::Command::new(file);
    process.args(&command.arguments).env_clear().envs(&environment).kill_on_drop(true);
    if let Some(directory) = &command.directory {
        process.current_dir(directory);
    }
    process.stdin(if input == StdinMode::Pipe { Stdio::piped() } else { Stdio::null() });
    let mut process = process
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| spawn_error(command, source))?;
    let stdin = process.stdin.take();
    let (Some(stdout), Some(stderr), Some(id)) = (process.stdout.take(), process.stderr.take(), process.id())
    else {
        return Err(SpawnError::Failed { program: program(), source: io::ErrorKind::InvalidData.into() });
    };
    let child = ChildProcess { process, id, exit: None, runtime, _permit: permit };
    Ok(StartedChild { child, stdin, stdout: PipeReader::Stdout(stdout), stderr: PipeReader::Stderr(stderr) })
}

fn spawn_error(command: &Command, source: io::Error) -> SpawnError {
    let program = display_name(&command.program);
    if let Some(directory) = command.directory.as_ref().filter(|directory| !directory.is_dir()) {
        return SpawnError::Directory { program, directory: directory.clone() };
    }
    match source.kind() {
        io::ErrorKind::NotFound => SpawnError::NotFound { program },
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { program, source },
        _ => SpawnError::Failed { program, source },
    }
}

impl ChildProcess {
    /// Returns the process id.
    pub(in super::super) fn id(&self) -> u32 {
        self.id
    }

    /// Returns the runtime that the child was started in.
    pub(in super::super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Polls until the process has exited.
    pub(in super::super) fn poll_exited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exit.is_some() {
            return Poll::Ready(());
        }
        let wait = std::pin::pin!(self.process.wait());
        Future::poll(wait, cx)
            .map(|status| self.exit = Some(status.map_or(ProcessExit::Unknown, ProcessExit::from)))
    }

    /// Kills the process: without a window there is no graceful termination on Windows.
    pub(in super::super) fn terminate(&mut self) {
        self.kill();
    }

    /// Ends the process.
    pub(in super::super) fn kill(&mut self) {
        let _ = self.process.start_kill();
    }

    /// Does nothing: Windows does not list the holders of a pipe.
    #[allow(clippy::unused_self, reason = "other systems do tell")]
    pub(in super::super) fn kill_pipe_holders(&self) {}

    /// Takes the exit of a process that has ended.
    pub(in super::super) fn reap(&mut self) -> ProcessExit {
        self.exit.unwrap_or(ProcessExit::Unknown)
    }
}

impl tokio::io::AsyncRead for PipeReader {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Stdout(pipe) => std::pin::Pin::new(pipe).poll_read(cx, buffer),
            Self::Stderr(pipe) => std::pin::Pin::new(pipe).poll_read(cx, buffer),
        }
    }
}
