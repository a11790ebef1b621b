//! A server that supports only some revisions.

use serde_json::{Value, json};
use trunkline_server::protocol::{Revision, RevisionSet};
use trunkline_server::{Host, HostOptions, Server};

use crate::support::{Client, ModernRequest, Peer, initialize};

fn speaking(revisions: RevisionSet) -> Host {
    Server::new("s").host(HostOptions { revisions, ..HostOptions::default() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn client_of_an_unsupported_era_gets_the_supported_revisions() {
    let discover: Value = ModernRequest::new("server/discover").value();
    for (spoken, message) in
        [(Revision::V2025_11_25, discover), (Revision::V2026_07_28, initialize("2025-11-25", json!({})))]
    {
        let host = speaking(RevisionSet::from_revisions([spoken]));
        let over_http = Client::new(&host).post(&message).await;
        assert_eq!(over_http.status, 400, "{spoken}");
        let answers = [over_http.answer().await, Peer::new(&host).call(&message).await];
        for answer in answers {
            assert_eq!(answer["error"]["code"], -32022, "{spoken}: {answer}");
            assert_eq!(answer["error"]["data"]["supported"], json!([spoken.as_str()]), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handshake_falls_back_to_the_newest_supported_revision() {
    let host = speaking(RevisionSet::from_revisions([Revision::V2024_11_05, Revision::V2025_06_18]));
    for (requested, answered) in [("2025-11-25", "2025-06-18"), ("2024-11-05", "2024-11-05")] {
        let hello = Peer::new(&host).call(&initialize(requested, json!({}))).await;
        assert_eq!(hello["result"]["protocolVersion"], answered, "{hello}");
    }
}

#[tokio::test(start_paused = true)]
async fn get_and_delete_are_not_allowed_without_legacy_revisions() {
    let client = Client::new(&speaking(RevisionSet::from_revisions([Revision::V2026_07_28])));
    assert_eq!(client.get().await.status, 405);
    assert_eq!(client.delete().await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn discovery_lists_only_supported_revisions() {
    let host = speaking(RevisionSet::from_revisions([Revision::V2026_07_28]));
    let discovered = Peer::new(&host).call(&ModernRequest::new("server/discover").value()).await;
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]), "{discovered}");
}
