//! A child process that never outlives its owner.

use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::machine::on_server_core;

const POLL: Duration = Duration::from_millis(2);

/// A running server, on the server's core.
pub(super) struct Process {
    child: Child,
}

impl Process {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_owned();
        let child =
            on_server_core(|| command.spawn()).with_context(|| format!("start {}", program.display()))?;
        Ok(Self { child })
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives the status of a process that has already ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends the process SIGTERM, as an operator would.
    pub(super) fn ask_to_end(&self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("no process id")?;
        kill_process(pid, Signal::TERM).context("send SIGTERM")
    }

    /// Waits until the process has ended by itself.
    pub(super) fn wait_at_most(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        while self.ended()?.is_none() {
            if Instant::now() >= deadline {
                bail!("the server did not end within {patience:?}");
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
