//! The test server, handlers of input requests, and scripted peers.

mod answers;
mod script;
mod server;

use std::time::Duration;

use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientBuilder};
use trunkline_server::Host;

pub(crate) use self::answers::{Answers, accept};
pub(crate) use self::script::{ScriptAction, ScriptedPeer, described, error, initialized, or_handshake};
pub(crate) use self::server::{Life, server};

/// Longer than anything here may take; on the paused clock a wait that never ends gets here at once.
const DEADLINE: Duration = Duration::from_secs(7200);

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

/// Connects to a server in this process in exactly one revision.
pub(crate) async fn connect(host: &Host, revision: Revision, builder: ClientBuilder) -> Client {
    let client = within(builder.pin(revision).connect(host.clone())).await.unwrap();
    assert_eq!(client.server().revision, revision);
    client
}
