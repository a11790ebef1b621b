//! What users of one hub see of each other at a server that each of them logs in to: nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use trunkline_client::{ChangeEvent, ChangeFilter, Client};

use crate::browser::Browser;
use crate::front::{ANN, BOB, Front, REVISIONS, link_in, say, tools};
use crate::protected_server::ProtectedServer;
use crate::{until, within};

#[tokio::test]
async fn two_users_never_see_each_others_lists_tokens_or_subscriptions() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there", "bob-there"]).await;
        let front = Front::for_users(vec![server.config("notes")]).await;
        let ann = front.client(Client::builder().pin(revision), ANN).await;
        let bob = front.client(Client::builder().pin(revision), BOB).await;
        let said = say(&ann, "notes__login").await;
        let page = Browser::default().log_in_with(&link_in(&said), ANN.1, "ann-there").await;
        assert!(page.text.contains("You are logged in"), "{revision}: {}", page.text);
        assert_eq!(say(&ann, "notes__whoami").await, "ann-there", "{revision}");
        // One has logged in, and the other has nothing of it.
        assert_eq!(tools(&bob).await, ["notes__login"], "{revision}");
        assert!(say(&bob, "notes__whoami").await.contains("requires a login"), "{revision}");
        assert!(within(bob.read("diary:day")).await.is_err(), "{revision}");
        let said = say(&bob, "notes__login").await;
        Browser::default().log_in_with(&link_in(&said), BOB.1, "bob-there").await;
        assert_eq!(say(&bob, "notes__whoami").await, "bob-there", "{revision}");
        for (client, own, other) in [(&ann, "ann", "bob"), (&bob, "bob", "ann")] {
            let listed = tools(client).await;
            assert!(listed.contains(&format!("notes__tool_of_{own}-there")), "{revision}: {listed:?}");
            assert!(!listed.iter().any(|tool| tool.contains(other)), "{revision}: {listed:?}");
            let foreign = say(client, &format!("notes__tool_of_{other}-there")).await;
            assert!(foreign.starts_with("error"), "{revision}: {foreign}");
            let read = within(client.read("diary:day")).await.unwrap();
            assert!(format!("{read:?}").contains(&format!("{own}-there")), "{revision}: {read:?}");
        }
        // A change of one user's resource reaches that user only, although both watch the same URI.
        let watch = ChangeFilter::default().with_uri("diary:day");
        let mut changes_of_ann = within(ann.subscribe(watch.clone())).await.unwrap();
        let mut changes_of_bob = within(bob.subscribe(watch)).await.unwrap();
        let seen_by_bob = Arc::new(AtomicUsize::new(0));
        let seen = seen_by_bob.clone();
        let counting = tokio::spawn(async move {
            while changes_of_bob.next().await.is_some() {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        });
        let updated = Some(ChangeEvent::Resource("diary:day".to_owned()));
        for _ in 0..20 {
            server.handles[0].1.notify_updated("diary:day");
            assert_eq!(within(changes_of_ann.next()).await, updated, "{revision}");
        }
        server.handles[1].1.notify_updated("diary:day");
        until(|| seen_by_bob.load(Ordering::SeqCst) > 0).await;
        counting.abort();
        // The hub itself reports an update after it has subscribed again.
        let seen = seen_by_bob.load(Ordering::SeqCst);
        assert!(seen < 5, "{revision}: {seen} of the 20 updates of another user");
        // Neither the tokens for the hub nor anything made of them ever reached the server.
        for (_, token) in [ANN, BOB] {
            assert!(!server.was_sent(token), "{revision}");
        }
        assert!(server.was_sent("Bearer access-"), "{revision}: the tap sees tokens");
    }
}

#[tokio::test]
async fn challenge_of_a_server_never_reaches_a_client() {
    for revision in REVISIONS {
        let server = ProtectedServer::start(&["ann-there"]).await;
        let front = Front::for_users(vec![server.config("notes")]).await;
        let ann = front.client(Client::builder().pin(revision), ANN).await;
        let said = say(&ann, "notes__login").await;
        Browser::default().log_in_with(&link_in(&said), ANN.1, "ann-there").await;
        assert_eq!(say(&ann, "notes__whoami").await, "ann-there", "{revision}");
        server.issuer.expire_access();
        server.issuer.forget_refresh();
        for tool in ["notes__whoami", "notes__write"] {
            let said = say(&ann, tool).await;
            assert!(said.contains("requires a login"), "{revision}: {said}");
            for foreign in ["sentinel-challenge", "resource_metadata", &server.origin, "401", "invalid_token"]
            {
                assert!(!said.contains(foreign), "{revision}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn revoking_one_user_leaves_the_other_logged_in() {
    let server = ProtectedServer::start(&["ann-there", "bob-there"]).await;
    let front = Front::for_users(vec![server.config("notes")]).await;
    let ann = front.client(Client::builder(), ANN).await;
    let bob = front.client(Client::builder(), BOB).await;
    for (client, user) in [(&ann, ANN), (&bob, BOB)] {
        let said = say(client, "notes__login").await;
        let account = format!("{}-there", user.0);
        Browser::default().log_in_with(&link_in(&said), user.1, &account).await;
        assert_eq!(say(client, "notes__whoami").await, account);
    }
    let stored = front.logins.stored_principal(&trunkline_session::Principal::Named(ANN.0.into())).unwrap();
    assert_eq!(within(front.hub.revoke_user(&stored, Some("notes"))).await.unwrap(), 1);
    assert_eq!(within(front.hub.revoke_user(&stored, None)).await.unwrap(), 0);
    assert!(within(front.hub.revoke_user(&stored, Some("unknown"))).await.is_err());
    assert!(say(&ann, "notes__whoami").await.contains("requires a login"));
    assert_eq!(say(&bob, "notes__whoami").await, "bob-there");
}
