//! What users of one hub see of each other at a server that each of them logs in to: nothing.

use std::task::Poll;

use futures_util::StreamExt as _;
use trunkline_client::protocol::Revision;
use trunkline_client::{ChangeEvent, ChangeFilter, ChangeStream, Client};

use crate::front::{ANN, BOB, REVISIONS, say, tools};
use crate::logged_in::{LoggedInUser, log_in};
use crate::within;

/// The resource that all users watch.
const DIARY: &str = "diary:day";

/// An update that a server sends names this part of the watched resource, with the account that it is for.
fn page_of(account: &str, number: usize) -> String {
    format!("{DIARY}/{account}/{number}")
}

#[tokio::test]
async fn two_users_never_see_each_others_lists_tokens_or_subscriptions() {
    for revision in REVISIONS {
        let LoggedInUser { server, front, ann } = LoggedInUser::start(revision, &["bob-there"]).await;
        let bob = front.client(Client::builder().pin(revision), BOB).await;
        // One has logged in, and the other has nothing of it.
        assert_eq!(tools(&bob).await, ["notes__login"], "{revision}");
        assert!(say(&bob, "notes__whoami").await.contains("requires a login"), "{revision}");
        assert!(within(bob.read(DIARY)).await.is_err(), "{revision}");
        log_in(&bob, BOB, "bob-there").await;
        for (client, own, other) in [(&ann, "ann", "bob"), (&bob, "bob", "ann")] {
            let listed = tools(client).await;
            assert!(listed.contains(&format!("notes__tool_of_{own}-there")), "{revision}: {listed:?}");
            assert!(!listed.iter().any(|tool| tool.contains(other)), "{revision}: {listed:?}");
            let foreign = say(client, &format!("notes__tool_of_{other}-there")).await;
            assert!(foreign.starts_with("error"), "{revision}: {foreign}");
            let read = within(client.read(DIARY)).await.unwrap();
            assert!(format!("{read:?}").contains(&format!("{own}-there")), "{revision}: {read:?}");
        }
        // A change of one user's resource reaches that user only, although both watch the same URI.
        let watch = ChangeFilter::default().with_uri(DIARY);
        let mut changes_of_ann = within(ann.subscribe(watch.clone())).await.unwrap();
        let mut changes_of_bob = within(bob.subscribe(watch)).await.unwrap();
        for number in 0..20 {
            server.handles[0].1.notify_updated(page_of("ann-there", number));
            wait_for_page(&mut changes_of_ann, "ann-there", number).await;
        }
        // What was published for Bob before this arrives before it.
        server.handles[1].1.notify_updated(page_of("bob-there", 0));
        wait_for_page(&mut changes_of_bob, "bob-there", 0).await;
        // Neither the tokens for the hub nor anything made of them ever reached the server.
        for (_, token) in [ANN, BOB] {
            assert!(!server.was_sent(token), "{revision}");
        }
        assert!(server.was_sent("Bearer access-"), "{revision}: the tap sees tokens");
    }
}

/// Waits for an update of a user's own, and refuses those of all others.
///
/// Own updates come more than once: the hub subscribes on each connection that it has for the user. If it subscribes
/// again, it reports an update of the watched URI itself, which no server here sends.
async fn wait_for_page(changes: &mut ChangeStream, account: &str, number: usize) {
    loop {
        match within(changes.next()).await {
            Some(ChangeEvent::Resource(uri)) if uri == page_of(account, number) => return,
            Some(ChangeEvent::Resource(uri)) if uri == DIARY => {}
            Some(ChangeEvent::Resource(uri)) if (0..number).any(|old| uri == page_of(account, old)) => {}
            other => panic!("{account} got {other:?}"),
        }
    }
}

#[tokio::test]
async fn challenge_of_a_server_never_reaches_a_client() {
    for revision in REVISIONS {
        let LoggedInUser { server, ann, front: _front } = LoggedInUser::start(revision, &[]).await;
        server.issuer.expire_access();
        server.issuer.forget_refresh();
        for tool in ["notes__whoami", "notes__write"] {
            let said = say(&ann, tool).await;
            assert!(said.contains("requires a login"), "{revision}: {said}");
            for foreign in ["sentinel-challenge", "resource_metadata", &server.origin, "invalid_token"] {
                assert!(!said.contains(foreign), "{revision}: {said}");
            }
            // The port and the code of the link to the hub are random digits.
            let words = said.split_whitespace().filter(|word| !word.starts_with("http://"));
            assert!(!words.collect::<String>().contains("401"), "{revision}: {said}");
        }
    }
}

#[tokio::test]
async fn revoking_one_user_leaves_the_other_logged_in() {
    let LoggedInUser { front, ann, server: _server } =
        LoggedInUser::start(Revision::NEWEST, &["bob-there"]).await;
    let bob = front.client(Client::builder(), BOB).await;
    log_in(&bob, BOB, "bob-there").await;
    let stored = front.logins.stored_principal(&trunkline_session::Principal::Named(ANN.0.into())).unwrap();
    assert_eq!(within(front.hub.revoke_user(&stored, Some("notes"))).await.unwrap(), 1);
    assert_eq!(within(front.hub.revoke_user(&stored, None)).await.unwrap(), 0);
    assert!(within(front.hub.revoke_user(&stored, Some("unknown"))).await.is_err());
    assert!(say(&ann, "notes__whoami").await.contains("requires a login"));
    assert_eq!(say(&bob, "notes__whoami").await, "bob-there");
}

#[tokio::test]
async fn stored_logins_are_listed_without_their_tokens() {
    let LoggedInUser { server, front, ann: _ann } =
        LoggedInUser::start(Revision::NEWEST, &["bob-there"]).await;
    let bob = front.client(Client::builder(), BOB).await;
    log_in(&bob, BOB, "bob-there").await;
    let (logins, has_more) = within(front.hub.stored_logins(10)).await.unwrap();
    assert_eq!((logins.len(), has_more), (2, false));
    let users: Vec<_> = logins.iter().map(|login| login.user.as_str()).collect();
    let stored = |user: (&str, _)| {
        front.logins.stored_principal(&trunkline_session::Principal::Named(user.0.into())).unwrap()
    };
    assert_eq!(users, [stored(ANN), stored(BOB)]);
    for login in &logins {
        assert_eq!(login.servers, ["notes"], "{login:?}");
        assert!(login.server_origin.starts_with("http://") && login.server_origin.matches('/').count() == 2);
        assert!(login.scopes == ["read"] && login.is_renewable, "{login:?}");
        assert!(!format!("{login:?}").contains("access-"), "{login:?}");
    }
    assert!(server.was_sent("Bearer access-"), "tokens would have been recognized");
    let (first, has_more) = within(front.hub.stored_logins(1)).await.unwrap();
    assert_eq!((first.len(), has_more), (1, true));
}

#[tokio::test]
async fn revoked_tokens_are_removed_even_if_they_are_refreshed_at_the_same_time() {
    let LoggedInUser { front, ann, server: _server } = LoggedInUser::start(Revision::NEWEST, &[]).await;
    let stored = front.logins.stored_principal(&trunkline_session::Principal::Named(ANN.0.into())).unwrap();
    let store = front.logins.store();
    let key = within(store.list(&stored)).await.unwrap().pop().unwrap();
    // A refresh is under way, and stores its tokens.
    let refreshing = within(store.lock(&key)).await.unwrap();
    let before = within(store.load(&key)).await.unwrap().unwrap();
    let mut revoking = std::pin::pin!(front.hub.revoke_user(&stored, None));
    let is_waiting = std::future::poll_fn(|cx| Poll::Ready(revoking.as_mut().poll(cx).is_pending()));
    assert!(is_waiting.await);
    within(store.save(&key, &before.tokens, before.generation)).await.unwrap();
    drop(refreshing);
    assert_eq!(within(revoking).await.unwrap(), 1);
    assert!(within(store.list(&stored)).await.unwrap().is_empty());
    assert!(say(&ann, "notes__whoami").await.contains("requires a login"));
}
