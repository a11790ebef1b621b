//! Servers that are reached with tokens in exchange for those of the callers (RFC 8693).

use futures_util::future::join_all;
use trunkline_client::Client;
use trunkline_client::protocol::Revision;
use trunkline_hub::UpstreamHealth;

use crate::exchange_server::ExchangeServer;
use crate::front::{ANN, BOB, Front, REVISIONS, say, tools};
use crate::protected_server::ProtectedServer;

/// A later token of the same user.
const NEXT_OF_ANN: (&str, &str) = ("ann", "token-of-ann-next");

#[tokio::test]
async fn callers_tokens_are_exchanged_at_the_token_endpoint_and_never_sent_to_the_server() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there", "bob-there"]).await;
        let exchange = ExchangeServer::start(&server).await;
        let front = Front::for_token_users(vec![exchange.config(&server)]).await;
        let ann = front.client(Client::builder().pin(revision), ANN).await;
        let bob = front.client(Client::builder().pin(revision), BOB).await;
        for (client, account, other) in [(&ann, "ann-there", "bob"), (&bob, "bob-there", "ann")] {
            let said = join_all((0..20).map(|_| say(client, "notes__whoami"))).await;
            assert!(said.iter().all(|said| said == account), "{revision}: {said:?}");
            let listed = tools(client).await;
            assert!(listed.contains(&format!("notes__tool_of_{account}")), "{revision}: {listed:?}");
            assert!(!listed.iter().any(|tool| tool.contains(other)), "{revision}: {listed:?}");
        }
        let forms = exchange.forms();
        assert_eq!(forms.len(), 2, "{revision}: one exchange for each user");
        let url = format!("{}/mcp", server.origin);
        for (form, (_, token)) in forms.iter().zip([ANN, BOB]) {
            for (name, expected) in [
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("subject_token", token),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
                ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
                ("audience", "notes-service"),
                ("resource", &url),
            ] {
                assert_eq!(form[name], expected, "{revision}: {name}");
            }
            assert!(!server.was_sent(token), "{revision}");
        }
        assert!(!server.was_sent("secret-of-the-hub") && !server.was_sent("token-of-"), "{revision}");
        assert!(server.was_sent("Bearer access-"), "{revision}: the tap sees tokens");
        assert!(!server.was_sent("/.well-known/"), "{revision}: nothing that the server names is fetched");
    }
}

#[tokio::test]
async fn expired_exchanged_token_is_exchanged_again_for_the_callers_latest_token() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let exchange = ExchangeServer::start(&server).await;
    exchange.set_life(0);
    let front = Front::for_token_users(vec![exchange.config(&server)]).await;
    let ann = front.client(Client::builder().pin(Revision::NEWEST), ANN).await;
    assert_eq!(say(&ann, "notes__whoami").await, "ann-there");
    exchange.set_life(3600);
    assert_eq!(say(&ann, "notes__whoami").await, "ann-there");
    let count = exchange.forms().len();
    assert_eq!(say(&ann, "notes__whoami").await, "ann-there");
    assert_eq!(exchange.forms().len(), count, "it is valid for an hour");
    // The server forgets it before that, and the client has a newer token by now.
    server.issuer.expire_access();
    let later = front.client(Client::builder().pin(Revision::NEWEST), NEXT_OF_ANN).await;
    assert_eq!(say(&later, "notes__whoami").await, "ann-there");
    let forms = exchange.forms();
    assert_eq!(forms.len(), count + 1);
    assert_eq!(forms[count]["subject_token"], NEXT_OF_ANN.1);
    assert!(forms.iter().all(|form| form["grant_type"].ends_with("token-exchange")), "{forms:?}");
}

#[tokio::test]
async fn refused_exchange_is_a_clear_error_until_the_caller_has_another_token() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let exchange = ExchangeServer::start(&server).await;
        exchange.refuse(Some("invalid_target"));
        let front = Front::for_token_users(vec![exchange.config(&server)]).await;
        let ann = front.client(Client::builder().pin(revision), ANN).await;
        for _ in 0..5 {
            let said = say(&ann, "notes__whoami").await;
            let expected = "refused to exchange the access token of the caller: invalid_target";
            assert!(said.contains(expected), "{revision}: {said}");
            for secret in [ANN.1, &exchange.endpoint, "sentinel-description", "secret-of-the-hub"] {
                assert!(!said.contains(secret), "{revision}: {said}");
            }
        }
        assert_eq!(exchange.forms().len(), 1, "{revision}: the refusal of a token is final");
        assert_eq!(front.hub.status_of("notes").unwrap().state, UpstreamHealth::NeedsAuth, "{revision}");
        assert!(tools(&ann).await.is_empty(), "{revision}: there is nothing to log in to");
        exchange.refuse(None);
        let later = front.client(Client::builder().pin(revision), NEXT_OF_ANN).await;
        assert_eq!(say(&later, "notes__whoami").await, "ann-there", "{revision}");
        // Also on an open connection.
        exchange.refuse(Some("invalid_grant"));
        server.issuer.expire_access();
        let said = say(&later, "notes__whoami").await;
        assert!(said.contains("the access token of the caller: invalid_grant"), "{revision}: {said}");
    }
}

#[tokio::test]
async fn callers_without_an_access_token_get_a_clear_error() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let exchange = ExchangeServer::start(&server).await;
        let config = || vec![exchange.config(&server)];
        let (static_token, anonymous) =
            (Front::for_users(config()).await, Front::for_anonymous(config()).await);
        let local = Front::for_local_user(config()).await;
        let clients = [
            static_token.client(Client::builder().pin(revision), ANN).await,
            anonymous.local_client(revision).await,
            local.local_client(revision).await,
        ];
        for client in &clients {
            let said = say(client, "notes__whoami").await;
            assert!(said.contains("this call came without one"), "{revision}: {said}");
        }
        assert_eq!(exchange.forms().len(), 0, "{revision}");
        assert!(!server.was_sent("token-of-"), "{revision}");
    }
}
