use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use trunkline_server::Shutdown;

/// A signal that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    #[cfg_attr(not(any(unix, test)), expect(dead_code, reason = "only Unix has it"))]
    Terminate,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// How far the program is on its way out. Clones share one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessShutdown {
    shutdown: Shutdown,
    shutting_down: Arc<AtomicBool>,
    forced_by: Arc<OnceLock<Signal>>,
}

impl ProcessShutdown {
    /// Returns the handle that ends the server.
    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Reports whether a signal has arrived; from then on no new work should be sent.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::SeqCst)
    }

    /// Returns the second signal, which ended the program at once.
    pub(crate) fn forced_by(&self) -> Option<Signal> {
        self.forced_by.get().copied()
    }

    /// Drains the server at the first signal, after `delay`, and stops it at the second. Calls `on_first` at the first
    /// signal. It never returns.
    pub(crate) async fn handle_signals(
        &self,
        mut signals: Signals,
        delay: Duration,
        on_first: impl FnOnce(),
    ) -> Infallible {
        let first = signals.next().await;
        self.shutting_down.store(true, Ordering::SeqCst);
        on_first();
        tracing::info!("shutting down on {}; a second signal exits immediately", first.name());
        let second = tokio::select! {
            second = signals.next() => second,
            () = tokio::time::sleep(delay) => {
                self.shutdown.drain();
                signals.next().await
            }
        };
        tracing::warn!("exiting immediately on {}", second.name());
        // It cannot have been set before: this is the only place that does, and it runs once.
        let _ = self.forced_by.set(second);
        self.shutdown.stop();
        std::future::pending().await
    }
}

/// The signals that this program listens to, from the moment that this is made.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// The operating system does not allow it.
    pub(crate) fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    ///
    /// Cancel safe: a signal is taken only when this returns.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// Never, here.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}

/// SIGHUP, handled from the moment that this is made: its default action would end the process.
#[derive(Debug)]
pub(crate) struct HangupSignals {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl HangupSignals {
    /// Begins to handle the signal. It has to be called within a runtime.
    ///
    /// # Errors
    /// The operating system does not allow it.
    pub(crate) fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { signal: signal(SignalKind::hangup())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
impl HangupSignals {
    /// There is no such signal here.
    ///
    /// # Errors
    /// Never.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}
