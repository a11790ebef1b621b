use std::fmt;
use std::sync::Arc;
use std::task::Context;

use super::command::Command;
use super::ending::Grace;
use super::error::{Ended, SpawnError, display_name};
use super::exit::{Cause, Exit};
use super::noise::Noise;
use super::output::{Line, Source};
use super::supervise::{LINE_BYTES, Phase, Shared, supervise};
use super::system::{self, Input, Reader as PipeReader, Started, Writer as PipeWriter};
use super::tail::Tail;

/// Who is shown every line that a server writes beside the protocol: to standard error, and to standard output where it is no
/// message.
pub type Observer = Arc<dyn Fn(&Line<'_>) + Send + Sync>;

/// Our ends of the pipes of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChildPipes {
    /// Its standard input.
    pub stdin: Option<PipeWriter>,
    /// Its standard output.
    pub stdout: PipeReader,
    /// The server itself.
    pub child: ChildWatch,
}

/// What whoever reads the pipes of a server needs of it.
#[derive(Clone)]
pub struct ChildWatch {
    shared: Arc<Shared>,
    /// Who is shown what is no message.
    observer: Option<Observer>,
}

impl ChildWatch {
    /// Returns how far the server is, and wakes the task when that changes.
    pub fn phase(&self, cx: &Context<'_>) -> Phase {
        self.shared.phase_for_channel(cx)
    }

    /// Asks for the end of the server, unless that was done before.
    pub fn ask(&self, cause: Cause) {
        self.shared.ask(cause);
    }

    /// Returns all that is known of it, once it has ended.
    pub fn ended(&self) -> Option<Ended> {
        self.shared.ended()
    }

    /// Counts and shows a line of standard output that is not for the reader.
    pub fn skip(&self, line: &[u8]) {
        self.shared.noise().add(line);
        if let Some(observer) = &self.observer {
            let text = String::from_utf8_lossy(line.get(..LINE_BYTES).unwrap_or(line));
            observer(&Line { source: Source::Stdout, text });
        }
    }
}

impl fmt::Debug for ChildWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildWatch").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// A server that runs as a child of this process.
///
/// Dropping this ends it in the background, by the same steps as [`Process::end`].
#[derive(Debug)]
pub struct Process {
    shared: Arc<Shared>,
    id: u32,
}

impl Process {
    /// Starts a server, and gives the pipes to it.
    ///
    /// One task watches over it and reads its standard error, whatever becomes of the pipes.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(
        command: &Command,
        grace: Grace,
        observer: Option<Observer>,
    ) -> Result<(ChildPipes, Self), SpawnError> {
        let Started { child, stdin, stdout, stderr } = system::start(command, Input::Pipe)?;
        let shared = Arc::new(Shared::new(display_name(&command.program)));
        let watch = ChildWatch { shared: Arc::clone(&shared), observer: observer.clone() };
        let process = Self { shared: Arc::clone(&shared), id: child.id() };
        let runtime = child.runtime().clone();
        runtime.spawn(supervise(child, stderr, shared, grace, observer));
        Ok((ChildPipes { stdin, stdout, child: watch }, process))
    }

    /// Returns its process id, which is that of its group too.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns how it ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.shared.exit()
    }

    /// Waits until it has ended and is reaped.
    ///
    /// Cancel safe.
    pub async fn exited(&self) -> Exit {
        self.shared.exited().await
    }

    /// Ends it: closes its standard input, waits, asks its group by a signal, waits, and kills the group.
    ///
    /// If the future is dropped, that goes on in the background.
    pub async fn end(self) -> Exit {
        self.shared.ask(Cause::Asked);
        self.shared.exited().await
    }

    /// Returns the last that it wrote to standard error.
    pub fn stderr(&self) -> Tail {
        self.shared.stderr()
    }

    /// Returns what it wrote to standard output beside the protocol.
    pub fn noise(&self) -> Noise {
        self.shared.noise().clone()
    }

    /// Returns all that is known of it, once it has ended.
    pub fn ended(&self) -> Option<Ended> {
        self.shared.ended()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.ask(Cause::Asked);
    }
}
