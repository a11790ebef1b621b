use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::process::{Pid, WaitId, WaitIdOptions};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Sees that a child has ended, and leaves it to be reaped.
#[derive(Debug)]
pub(super) struct ExitWatcher {
    child: Pid,
    watch: ExitWatchKind,
}

#[derive(Debug)]
enum ExitWatchKind {
    /// A descriptor that becomes readable at the end of its process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has such descriptors"))]
    Descriptor(AsyncFd<OwnedFd>),
    /// A look at the child whenever any child ended, where there is no such descriptor.
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

    /// Polls until the child has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.watch {
            ExitWatchKind::Descriptor(descriptor) => match ready!(descriptor.poll_read_ready(cx)) {
                Ok(_) => Poll::Ready(()),
                // The runtime is going away, and this with it.
                Err(_) => Poll::Pending,
            },
            ExitWatchKind::AnyChild(_) => self.poll_any_child(cx),
        }
    }

    fn poll_any_child(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // The signals were subscribed to before this looks, so none is missed.
            if !matches!(self.has_exited(), Ok(false)) {
                return Poll::Ready(());
            }
            let ExitWatchKind::AnyChild(signals) = &mut self.watch else { return Poll::Pending };
            if ready!(signals.poll_recv(cx)).is_none() {
                return Poll::Pending;
            }
        }
    }

    /// Tells whether the child has ended by now.
    ///
    /// # Errors
    /// There is no such child: somebody else reaped it.
    pub(super) fn has_exited(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(rustix::process::waitid(WaitId::Pid(self.child), options)?.is_some())
    }
}
