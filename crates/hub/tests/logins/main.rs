//! Servers behind a hub that demand a login, over HTTP, with an authorization server of their own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod asking;
mod browser;
mod exchange;
mod exchange_server;
mod front;
mod isolation;
mod links;
mod logged_in;
mod processes;
mod protected_server;
mod raw_server;
mod refreshing;
mod shared_tokens;
mod sign_in;
mod token_issuer;
mod url_required;

use std::time::Duration;

/// Longer than anything here takes, however busy the machine is.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
#[track_caller]
fn within<F: IntoFuture>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(DEADLINE, future.into_future()).await {
            Ok(done) => done,
            Err(_) => panic!("nothing happened at {caller}"),
        }
    }
}

/// Waits until something is so.
#[track_caller]
fn until(mut what: impl FnMut() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
}
