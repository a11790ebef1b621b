//! Lets the first call of a session wait for the roots that the server requests when the session begins.
//!
//! A server such as server-filesystem sends `roots/list` when it receives `notifications/initialized`, and refuses
//! every path until it has the response. A server handles messages in order, so that its response to a ping shows that
//! such a request, if there is one, was sent before.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use trunkline_client::Client;

use super::roots::UpstreamRoots;

/// How long the first call waits for the response to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the first call waits at least after the server has received the roots: it may resolve them before it uses
/// them, and nothing shows that it has.
const APPLY_DELAY: Duration = Duration::from_millis(150);

/// How long the first call waits at most for that.
const MAX_APPLY_DELAY: Duration = Duration::from_secs(1);

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
            if self.was_requested() {
                self.wait_answered().await;
                // The server has received the roots before this.
                ping(client).await;
                // On a busy machine a server is slow to start, and as slow to resolve roots.
                sleep(self.connect_time().clamp(APPLY_DELAY, MAX_APPLY_DELAY)).await;
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

/// Pings a server. Whether it knows the method does not matter.
async fn ping(client: &Client) {
    let _ = timeout(PING_TIMEOUT, client.ping()).await;
}
