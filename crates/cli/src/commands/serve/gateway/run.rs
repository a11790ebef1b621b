use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use trunkline_config::ServerConfig;

use super::Gateway;
use crate::terminal::escape_line;

impl Gateway {
    /// Connects the servers, watches the file and handles admin requests. It never returns.
    ///
    /// The servers are known to the hub when this is polled for the first time.
    pub(in crate::commands::serve) async fn run(&self, servers: Vec<ServerConfig>) -> Infallible {
        tokio::select! {
            biased;
            never = self.start(servers) => never,
            never = self.follow_config_once() => never,
            never = self.serve_admin() => never,
        }
    }

    async fn start(&self, servers: Vec<ServerConfig>) -> Infallible {
        let turn = self.inner.reload_lock.lock().await;
        let mut applying = Box::pin(self.apply(servers));
        let begun = poll_once(&mut applying).await;
        drop(turn);
        if begun.is_pending() {
            applying.await;
        }
        for (server, reason) in self.unready_servers() {
            tracing::error!(server, "not ready: a required server is unavailable: {}", escape_line(&reason));
        }
        std::future::pending().await
    }

    async fn follow_config_once(&self) -> Infallible {
        let hangups = self.inner.hangup_signals.lock().take();
        match hangups {
            Some(hangups) => self.follow_config(hangups).await,
            None => std::future::pending().await,
        }
    }

    async fn serve_admin(&self) -> Infallible {
        match &self.inner.admin_socket {
            Some(socket) => socket.serve(self).await,
            None => std::future::pending().await,
        }
    }
}

/// Begins something, and returns once it has got as far as it gets without waiting.
pub(in crate::commands::serve) async fn poll_once<F: Future + Unpin>(doing: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *doing).poll(cx))).await
}
