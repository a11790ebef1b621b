//! The driver: requests as values, a client over HTTP, and a peer over a channel.

mod caller_route;
mod exchange;
mod http;
mod live_count;
mod message;
mod peer;
mod received_line;

use std::time::Duration;

use trunkline_server::{Host, HostOptions, Server, ServerLimits};

pub(crate) use self::caller_route::ways;
pub(crate) use self::exchange::HttpExchange;
pub(crate) use self::http::{Client, JSON_ONLY, initialize, service};
pub(crate) use self::live_count::{LiveCount, LiveGuard};
pub(crate) use self::message::{
    ModernRequest, code, legacy, legacy_tool, note, outcome, questions, response, state, text, tool_text,
};
pub(crate) use self::peer::Peer;
pub(crate) use self::received_line::{ReceivedLine, lines};

/// Longer than anything here may take; on the paused clock a wait that never ends gets here at once.
const DEADLINE: Duration = Duration::from_secs(3600);

/// Waits for something that must happen.
#[track_caller]
pub(crate) fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(DEADLINE, future).await {
            Ok(done) => done,
            Err(_) => panic!("nothing happened at {caller}"),
        }
    }
}

/// Lets every other task run until all of them wait.
///
/// The runtime has one thread and its queue is fair, so that each turn here gives every woken task one.
pub(crate) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Makes a host with bounds of its own.
pub(crate) fn host_with(server: &Server, limits: ServerLimits) -> Host {
    server.host(HostOptions { limits, ..HostOptions::default() }).unwrap()
}

/// Makes a host with the default bounds.
pub(crate) fn host(server: &Server) -> Host {
    host_with(server, ServerLimits::default())
}
