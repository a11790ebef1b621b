//! Servers that are reached with tokens in exchange for those of the callers (RFC 8693).

use std::time::Duration;

use futures_util::future::join_all;
use trunkline_client::Client;
use trunkline_client::protocol::Revision;
use trunkline_hub::UpstreamConnectionState;

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
        assert_eq!(
            front.hub.status_of("notes").unwrap().state,
            UpstreamConnectionState::NeedsAuth,
            "{revision}"
        );
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

#[tokio::test]
async fn refusal_that_is_not_about_the_token_holds_for_thirty_seconds() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let exchange = ExchangeServer::start(&server).await;
        let front = Front::for_token_users(vec![exchange.config(&server)]).await;
        let ann = front.client(Client::builder().pin(revision), ANN).await;
        // More often than an operation is tried, and then once on an open connection.
        for round in 1..=5 {
            exchange.refuse(Some("invalid_client"));
            if round == 5 {
                server.issuer.expire_access();
            }
            for _ in 0..3 {
                let said = say(&ann, "notes__whoami").await;
                assert!(said.contains("invalid_client"), "{revision} {round}: {said}");
            }
            exchange.refuse(None);
            assert!(say(&ann, "notes__whoami").await.contains("invalid_client"), "{revision} {round}");
            assert_eq!(exchange.forms().len(), round + usize::from(round == 5), "{revision}");
            advance(31).await;
            if round >= 4 {
                assert_eq!(say(&ann, "notes__whoami").await, "ann-there", "{revision} {round}");
            }
        }
    }
}

/// Lets the clock of the hub go on.
async fn advance(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// Another token of the same user, with fewer rights.
const NARROW_OF_ANN: (&str, &str) = ("ann", "token-of-ann-narrow");

#[tokio::test]
async fn calls_use_only_what_their_own_token_was_exchanged_for() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let exchange = ExchangeServer::start(&server).await;
        exchange.grant_write_for(ANN.1);
        let front = Front::for_token_users(vec![exchange.config(&server)]).await;
        let wide = front.client(Client::builder().pin(revision), ANN).await;
        let narrow = front.client(Client::builder().pin(revision), NARROW_OF_ANN).await;
        // They wait for the first connection together, when the last of them has the latest token.
        let calls = (0..40).map(|n| {
            let (client, can_write) = if n % 2 == 0 { (&narrow, false) } else { (&wide, true) };
            async move { (say(client, "notes__write").await, can_write) }
        });
        for (said, can_write) in join_all(calls).await {
            assert_eq!(said == "written", can_write, "{revision}: {said}");
        }
        let of_wide = exchange.forms().iter().filter(|form| form["subject_token"] == ANN.1).count();
        assert_eq!(of_wide, 1, "{revision}: it is exchanged once, whatever other tokens its user has");
    }
}

#[tokio::test]
async fn refused_token_of_a_caller_does_not_affect_another_and_is_not_exchanged_again() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let exchange = ExchangeServer::start(&server).await;
    let front = Front::for_token_users(vec![exchange.config(&server)]).await;
    let wide = front.client(Client::builder().pin(Revision::NEWEST), ANN).await;
    assert_eq!(say(&wide, "notes__whoami").await, "ann-there");
    let narrow = front.client(Client::builder().pin(Revision::NEWEST), NARROW_OF_ANN).await;
    exchange.refuse(Some("invalid_grant"));
    assert!(say(&narrow, "notes__whoami").await.contains("invalid_grant"));
    exchange.refuse(None);
    let count = exchange.forms().len();
    for _ in 0..3 {
        assert_eq!(say(&wide, "notes__whoami").await, "ann-there");
        let said = say(&narrow, "notes__whoami").await;
        assert!(said.contains("invalid_grant"), "{said}");
    }
    assert_eq!(exchange.forms().len(), count, "the refusal of a token is final");
}
