//! What a client does over HTTP: against the real server by every transport, and against servers that are only scripts.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod authorization;
mod eras;
mod everything;
mod floods;
mod hostile;
mod message_memory;
mod mirroring;
mod resumed_sessions;
mod resumption;
mod scripted;
mod sessions;
mod test_server;
mod token_exchange;
mod websocket;

#[path = "../behaviour/support/answers.rs"]
mod answers;
#[path = "../behaviour/support/server.rs"]
mod server;

use std::time::Duration;

/// Long enough for any machine, and only ever waited for by a test that fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// Waits for something that must happen.
#[track_caller]
fn within<T>(future: impl IntoFuture<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    let future = future.into_future();
    async move {
        match tokio::time::timeout(DEADLINE, future).await {
            Ok(done) => done,
            Err(_) => panic!("nothing happened at {caller}"),
        }
    }
}
