//! The driver: requests as values, a client over HTTP, and a peer over a channel.

mod exchange;
mod http;
mod life;
mod line;
mod message;
mod peer;
mod way;

use std::time::Duration;

use trunkline_server::{Host, HostOptions, Limits, Server};

pub(crate) use self::exchange::Exchange;
pub(crate) use self::http::{Client, JSON_ONLY, initialize, service};
pub(crate) use self::life::{Alive, Life};
pub(crate) use self::line::{Line, lines};
pub(crate) use self::message::{
    Modern, code, legacy, legacy_tool, note, outcome, questions, response, state, text, tool_text,
};
pub(crate) use self::peer::Peer;
pub(crate) use self::way::ways;

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
pub(crate) fn host_with(server: &Server, limits: Limits) -> Host {
    server.host(HostOptions { limits, ..HostOptions::default() }).unwrap()
}

/// Makes a host with the default bounds.
pub(crate) fn host(server: &Server) -> Host {
    host_with(server, Limits::default())
}
