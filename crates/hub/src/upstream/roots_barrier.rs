//! Lets the first call of a session wait for the roots that the server requests when the session begins.
//!
//! A server such as server-filesystem sends `roots/list` when it receives `notifications/initialized`, and refuses
//! every path until it uses the response. Three things happen in between, and each is waited for in another way:
//!
//! 1. The request arrives. A server handles messages in order, so that its response to a ping shows that such a
//!    request, if there is one, was sent before.
//! 2. It is answered. The request and the response to the ping arrive together, and the task that answers requests may
//!    run later than the one that waits for the ping: the client counts requests in the order of their arrival.
//! 3. The server resolves the roots: server-filesystem makes two file operations for each, one after the other and
//!    beside its message loop. No message shows when they are done, but while they run the server answers pings, and
//!    a busy machine slows down both. See [`APPLY_ROUNDS`].

use std::time::Duration;

use tokio::time::{sleep, timeout};
use trunkline_client::Client;

use super::roots::UpstreamRoots;

/// How long the first call waits for the response to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The pings after the server has received the roots, besides one for each root.
///
/// Of 400 processes of server-filesystem with one root, started 20 and 40 at a time on a machine with two cores that was
/// busy otherwise, 85 % used it after one ping and its pause, and all after five; of 80 with ten roots, after twelve.
const APPLY_ROUNDS: usize = 6;

/// The roots that add to the number of pings.
const MAX_COUNTED_ROOTS: usize = 12;

/// The pause after a ping; longer if the server takes longer to answer.
const APPLY_PAUSE: Duration = Duration::from_millis(20);

/// How long the first call waits at most for the server to resolve the roots.
const MAX_APPLY_DELAY: Duration = Duration::from_secs(5);

impl UpstreamRoots {
    /// Reports whether calls need not wait for the roots of the session.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled.initialized()
    }

    /// Waits until the server has the roots that it requests at the start of the session, if it does. `fetch` fetches
    /// those of the caller, and is polled only if they are not known.
    pub(crate) async fn settle(&self, client: &Client, fetch: impl Future<Output = ()>) {
        let settling = self.settled.get_or_init(|| async {
            ping(client).await;
            // A server that never stops sending requests delays its own calls only.
            let _ = timeout(self.answer_timeout, client.session_requests_answered()).await;
            // Without roots there is nothing to resolve.
            if self.answered() > 0 {
                let _ = timeout(MAX_APPLY_DELAY, wait_applied(client, self.answered())).await;
            }
        });
        let providing = async {
            self.requested().await;
            fetch.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            _ = settling => {}
            () = providing => {}
        }
    }
}

/// Waits until the server has most probably resolved so many roots.
async fn wait_applied(client: &Client, roots: usize) {
    for _ in 0..APPLY_ROUNDS + roots.min(MAX_COUNTED_ROOTS) {
        let took = ping(client).await;
        sleep(took.max(APPLY_PAUSE)).await;
    }
}

/// Pings a server, and returns how long that took. Whether it knows the method does not matter.
async fn ping(client: &Client) -> Duration {
    let began = tokio::time::Instant::now();
    let _ = timeout(PING_TIMEOUT, client.ping()).await;
    began.elapsed()
}
