//! Tokens that expire.

use futures_util::future::join_all;
use trunkline_client::protocol::Revision;

use crate::browser::Browser;
use crate::front::{ANN, REVISIONS, link_in, say};
use crate::logged_in::LoggedInUser;
use crate::protected_server::ProtectedServer;

#[tokio::test]
async fn fifty_parallel_calls_on_an_expired_token_make_one_refresh() {
    for revision in REVISIONS {
        let LoggedInUser { server, ann, front: _front } = LoggedInUser::start(revision, &[]).await;
        assert_eq!(server.issuer.grants("refresh_token"), 0, "{revision}");
        server.issuer.expire_access();
        let said = join_all((0..50).map(|_| say(&ann, "notes__whoami"))).await;
        assert!(said.iter().all(|said| said == "ann-there"), "{revision}: {said:?}");
        assert_eq!(server.issuer.grants("refresh_token"), 1, "{revision}");
    }
}

/// A process that was killed between the rotation of a refresh token and its storage leaves one that is not valid.
#[tokio::test]
async fn lost_rotation_leaves_one_login_as_needs_auth_without_a_retry_loop() {
    for revision in REVISIONS {
        let LoggedInUser { server, ann, front: _front } = LoggedInUser::start(revision, &[]).await;
        server.issuer.expire_access();
        server.issuer.forget_refresh();
        for _ in 0..5 {
            let said = say(&ann, "notes__whoami").await;
            assert!(said.contains("requires a login"), "{revision}: {said}");
        }
        assert_eq!(server.issuer.grants("refresh_token"), 1, "{revision}: the refusal is final");
        let link = link_in(&say(&ann, "notes__whoami").await);
        Browser::default().log_in_with(&link, ANN.1, "ann-there").await;
        assert_eq!(say(&ann, "notes__whoami").await, "ann-there", "{revision}");
    }
}

#[tokio::test]
async fn tokens_are_refreshed_before_they_expire() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    server.issuer.set_life(0);
    let LoggedInUser { server, .. } = LoggedInUser::start_with(Revision::NEWEST, server).await;
    assert!(server.issuer.grants("refresh_token") > 0);
}
