use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::process::{Pid, WaitId, WaitIdOptions};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Detects the exit of a child without reaping it.
#[derive(Debug)]
pub(super) struct ExitWatcher {
    child: Pid,
    watch: ExitWatchKind,
}

#[derive(Debug)]
enum ExitWatchKind {
    /// A pidfd, which becomes readable at the exit of its process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has such descriptors"))]
    Descriptor(AsyncFd<OwnedFd>),
    /// A check of the child on every `SIGCHLD`, where there are no pidfds.
    AnyChild(Signal),
}

impl ExitWatcher {
    pub(super) fn new(child: Pid) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(descriptor) = rustix::process::pidfd_open(child, rustix::process::PidfdFlags::empty()) {
            let descriptor = super::super::reaper::watch_descriptor(descriptor)?;
            return Ok(Self { child, watch: ExitWatchKind::Descriptor(descriptor) });
        }
        Ok(Self { child, watch: ExitWatchKind::AnyChild(signal(SignalKind::child())?) })
    }

    /// Polls until the child has exited.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.watch {
            ExitWatchKind::Descriptor(descriptor) => match ready!(descriptor.poll_read_ready(cx)) {
                Ok(_) => Poll::Ready(()),
                // The runtime is shutting down, and this task with it.
                Err(_) => Poll::Pending,
            },
            ExitWatchKind::AnyChild(_) => self.poll_any_child(cx),
        }
    }

    fn poll_any_child(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // The subscription to the signal precedes this check, so no exit is missed.
            if !matches!(self.has_exited(), Ok(false)) {
                return Poll::Ready(());
            }
            let ExitWatchKind::AnyChild(signals) = &mut self.watch else { return Poll::Pending };
            if ready!(signals.poll_recv(cx)).is_none() {
                return Poll::Pending;
            }
        }
    }

    /// Reports whether the child has exited.
    ///
    /// # Errors
    /// There is no such child: other code reaped it.
    pub(super) fn has_exited(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(rustix::process::waitid(WaitId::Pid(self.child), options)?.is_some())
    }
}
