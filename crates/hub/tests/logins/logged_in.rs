//! Users who are logged in to a server behind a hub.

use trunkline_client::Client;
use trunkline_client::protocol::Revision;

use crate::browser::Browser;
use crate::front::{ANN, Front, link_in, say};
use crate::protected_server::ProtectedServer;

/// A hub with the server `notes`, at which Ann is logged in as `ann-there`.
pub(crate) struct LoggedInUser {
    pub(crate) server: ProtectedServer,
    pub(crate) front: Front,
    pub(crate) ann: Client,
}

impl LoggedInUser {
    /// Starts a server for `ann-there` and other accounts, and logs Ann in.
    pub(crate) async fn start(revision: Revision, accounts: &[&'static str]) -> Self {
        let server = ProtectedServer::start(&[&["ann-there"], accounts].concat()).await;
        Self::start_with(revision, server).await
    }

    pub(crate) async fn start_with(revision: Revision, server: ProtectedServer) -> Self {
        let front = Front::for_users(vec![server.config("notes")]).await;
        let ann = front.client(Client::builder().pin(revision), ANN).await;
        log_in(&ann, ANN, "ann-there").await;
        Self { server, front, ann }
    }
}

/// Logs a user of the hub in to the server `notes`, by the link that its login tool returns.
pub(crate) async fn log_in(client: &Client, (_, token): (&str, &str), account: &str) {
    let link = link_in(&say(client, "notes__login").await);
    let page = Browser::default().log_in_with(&link, token, account).await;
    assert!(page.text.contains("You are logged in"), "{}", page.text);
    assert_eq!(say(client, "notes__whoami").await, account);
}
