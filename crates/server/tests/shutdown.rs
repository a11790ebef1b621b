//! The end of a channel: not before its responses are written, and at once when the server stops.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::sync::Notify;
use trunkline_server::session::Principal;
use trunkline_server::transport::{Channel as _, LineChannel, memory};
use trunkline_server::{HostOptions, ServeError, Server, Tool};

/// Long enough for any machine, and only ever waited for by a test that fails.
const DEADLINE: Duration = Duration::from_secs(10);

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Takes bytes at once and writes them later, as a file behind a thread does.
struct SlowFlush {
    polls_left: usize,
    flushed: Arc<AtomicBool>,
}

impl AsyncWrite for SlowFlush {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.polls_left > 0 {
            self.polls_left -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.flushed.store(true, Ordering::SeqCst);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn channel_ends_only_after_its_responses_are_flushed() {
    let flushed = Arc::new(AtomicBool::new(false));
    let writer = SlowFlush { polls_left: 5, flushed: flushed.clone() };
    let host = Server::new("test").host(HostOptions::default()).unwrap();
    let channel = LineChannel::new(PING.as_bytes(), writer, 1024);
    let served = host.serve_channel(channel, Principal::Process);
    tokio::time::timeout(DEADLINE, served).await.expect("the input has ended").unwrap();
    assert!(flushed.load(Ordering::SeqCst));
}

#[tokio::test]
async fn stopping_ends_a_draining_channel_with_an_endless_call() {
    let started = Arc::new(Notify::new());
    let tool = {
        let started = started.clone();
        Tool::new("endless").run(move || {
            let started = started.clone();
            async move {
                started.notify_one();
                std::future::pending::<()>().await;
            }
        })
    };
    let host = Server::new("test").with(tool).host(HostOptions::default()).unwrap();
    let shutdown = host.shutdown().clone();
    let (ours, mut theirs) = memory(8);
    theirs.send(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    );
    std::future::poll_fn(|cx| theirs.poll_flush(cx)).await.unwrap();
    let served = tokio::spawn(async move { host.serve_channel(ours, Principal::Process).await });
    tokio::time::timeout(DEADLINE, started.notified()).await.expect("the call runs");
    shutdown.drain();
    // The runtime has one thread, so the channel has seen the drain by the time that this continues.
    tokio::task::yield_now().await;
    assert!(!served.is_finished(), "draining waits for calls");
    shutdown.stop();
    let ended = tokio::time::timeout(DEADLINE, served).await.expect("stopping wakes the channel").unwrap();
    assert!(matches!(ended, Err(ServeError::Aborted(1))), "{ended:?}");
}
