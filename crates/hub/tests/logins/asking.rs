//! How the hub sends a user to log in, in the way that the client supports.

use std::sync::{Arc, Mutex};

use trunkline_client::protocol::model::{
    ClientCapabilities, ElicitAction, ElicitResult, InputRequest, InputResponse,
};
use trunkline_client::protocol::{JsonObject, Refusal};
use trunkline_client::{BoxFuture, Client, InputHandler, InputOrigin};
use trunkline_hub::UpstreamConnectionState;

use crate::browser::Browser;
use crate::front::{ANN, Front, REVISIONS, link_in, say, tools};
use crate::protected_server::ProtectedServer;
use crate::until;

/// Opens links in a browser: that of a user of the hub, who logs in as a user of the server.
#[derive(Clone)]
struct LinkOpener {
    user: &'static str,
    token: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
    completed: Arc<Mutex<usize>>,
    action: ElicitAction,
}

impl LinkOpener {
    fn new(user: &'static str, token: &'static str) -> Self {
        let (asked, completed) = (Arc::default(), Arc::default());
        Self { user, token, asked, completed, action: ElicitAction::Accept }
    }
}

impl InputHandler for LinkOpener {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_url()
    }

    fn answer(&self, _: InputOrigin, request: InputRequest) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        let InputRequest::Url(page) = request else { panic!("{request:?}") };
        self.asked.lock().unwrap().push(page.message);
        if self.action == ElicitAction::Accept {
            let (user, token) = (self.user, self.token);
            // The user opens the page after the client has answered.
            tokio::spawn(async move { Browser::default().log_in_with(&page.url, token, user).await });
        }
        let answer = ElicitResult { action: self.action, content: None, rest: JsonObject::new() };
        Box::pin(std::future::ready(Ok(InputResponse::Elicit(answer))))
    }

    fn elicitation_complete(&self, _: &str) {
        *self.completed.lock().unwrap() += 1;
    }
}

#[tokio::test]
async fn clients_with_url_elicitation_are_sent_to_the_page_and_their_call_continues() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let front = Front::for_users(vec![server.config("notes")]).await;
        let opener = LinkOpener::new("ann-there", ANN.1);
        let builder = Client::builder().pin(revision).input(opener.clone());
        let client = front.client(builder, ANN).await;
        // Nothing is known of the server before the login but that there is one.
        assert_eq!(tools(&client).await, ["notes__login"], "{revision}");
        assert_eq!(say(&client, "notes__whoami").await, "ann-there", "{revision}");
        assert_eq!(*opener.asked.lock().unwrap(), ["Log in to `notes` to continue."], "{revision}");
        let listed = tools(&client).await;
        assert!(listed.contains(&"notes__tool_of_ann-there".to_owned()), "{revision}: {listed:?}");
        assert_eq!(say(&client, "notes__whoami").await, "ann-there", "{revision}");
        assert_eq!(opener.asked.lock().unwrap().len(), 1, "{revision}: one login");
        if revision.era() == trunkline_client::protocol::Era::Legacy {
            until(|| *opener.completed.lock().unwrap() == 1).await;
        }
    }
}

#[tokio::test]
async fn server_that_demands_a_token_only_for_its_lists_can_be_logged_in_to() {
    for revision in REVISIONS {
        let server = ProtectedServer::start_with_open_handshake(&["ann-there"]).await;
        let front = Front::for_users(vec![server.config("notes")]).await;
        let opener = LinkOpener::new("ann-there", ANN.1);
        let client = front.client(Client::builder().pin(revision).input(opener.clone()), ANN).await;
        assert_eq!(tools(&client).await, ["notes__login"], "{revision}");
        assert!(say(&client, "notes__login").await.contains("Logged in"), "{revision}");
        let listed = tools(&client).await;
        assert!(listed.contains(&"notes__tool_of_ann-there".to_owned()), "{revision}: {listed:?}");
        assert_eq!(say(&client, "notes__whoami").await, "ann-there", "{revision}");
        assert_eq!(opener.asked.lock().unwrap().len(), 1, "{revision}: one login");
    }
}

#[tokio::test]
async fn step_up_asks_for_the_union_of_scopes() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let front = Front::for_users(vec![server.config("notes")]).await;
        let opener = LinkOpener::new("ann-there", ANN.1);
        let client = front.client(Client::builder().pin(revision).input(opener.clone()), ANN).await;
        assert_eq!(say(&client, "notes__whoami").await, "ann-there", "{revision}");
        assert_eq!(say(&client, "notes__write").await, "written", "{revision}");
        assert_eq!(opener.asked.lock().unwrap().len(), 2, "{revision}");
        assert!(server.was_sent("scope=read+write"), "{revision}: the union is requested");
        assert_eq!(say(&client, "notes__write").await, "written", "{revision}");
        assert_eq!(opener.asked.lock().unwrap().len(), 2, "{revision}");
    }
}

#[tokio::test]
async fn clients_without_url_elicitation_get_the_link_as_a_readable_result() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let front = Front::for_local_user(vec![server.config("notes")]).await;
        let client = front.local_client(revision).await;
        assert_eq!(tools(&client).await, ["notes__login"], "{revision}");
        let status = front.hub.status_of("notes").unwrap();
        assert_eq!(status.state, UpstreamConnectionState::NeedsAuth, "{revision}");
        let said = say(&client, "notes__login").await;
        assert!(said.contains("requires a login"), "{revision}: {said}");
        assert!(!said.contains("WWW-Authenticate") && !said.contains("resource_metadata"), "{said}");
        let page = Browser::default().log_in(&link_in(&said), "ann-there").await;
        assert!(page.text.contains("You are logged in to notes"), "{revision}: {}", page.text);
        until(|| front.hub.status_of("notes").unwrap().state == UpstreamConnectionState::Ready).await;
        assert_eq!(say(&client, "notes__whoami").await, "ann-there", "{revision}");
        assert!(!tools(&client).await.contains(&"notes__login".to_owned()), "{revision}");
    }
}

#[tokio::test]
async fn declined_login_is_a_readable_result() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let front = Front::for_users(vec![server.config("notes")]).await;
        let opener = LinkOpener { action: ElicitAction::Decline, ..LinkOpener::new("ann-there", ANN.1) };
        let client = front.client(Client::builder().pin(revision).input(opener), ANN).await;
        let said = say(&client, "notes__whoami").await;
        assert!(said.contains("was declined") && said.contains("/connect/"), "{revision}: {said}");
    }
}
