use serde_json::json;
use trunkline_commands::{ManifestLimits, Manifests};

use crate::peer::LegacyPeer;
use crate::support::{folder, host, program};

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_listed_read_and_watched() {
    let folder = folder("manifests");
    std::fs::create_dir_all(folder.join("child/grandchild")).unwrap();
    // Without a repository of its own the folder would lie within ours.
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    std::fs::write(folder.join("golem.yaml"), "a: 1\n").unwrap();
    std::fs::write(folder.join("child/grandchild/golem.yaml"), "deep\n").unwrap();
    let host = host(&program().manifests(Manifests::new(["golem.yaml"]).directory(&folder)));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let listed = peer.request("resources/list", json!({})).await["result"]["resources"].clone();
    let uri = format!("file://{}/golem.yaml", folder.display());
    assert_eq!(
        listed,
        json!([{ "uri": uri, "name": "golem.yaml", "mimeType": "application/yaml", "size": 5 }])
    );
    let read = peer.request("resources/read", json!({ "uri": uri })).await;
    let contents = json!([{ "uri": uri, "mimeType": "application/yaml", "text": "a: 1\n" }]);
    assert_eq!(read["result"]["contents"], contents);
    for outside in [
        format!("file://{}/child/grandchild/golem.yaml", folder.display()),
        format!("file://{}/child/../golem.yaml", folder.display()),
        "file:///etc/passwd".to_owned(),
        "golem.yaml".to_owned(),
    ] {
        let answer = peer.request("resources/read", json!({ "uri": outside })).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
    }

    peer.request("resources/subscribe", json!({ "uri": uri })).await;
    std::fs::write(folder.join("golem.yaml"), "a: 22\n").unwrap();
    let told = peer.receive().await;
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri))
    );
    std::fs::write(folder.join("child/golem.yaml"), "b: 1\n").unwrap();
    loop {
        let told = peer.receive().await;
        if told["method"] == "notifications/resources/list_changed" {
            break;
        }
        // One write may be two events, and so two notices of the same.
        assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    }
    let listed = peer.request("resources/list", json!({})).await["result"]["resources"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_beyond_the_watch_limit_are_polled() {
    let folder = folder("unwatched");
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    std::fs::create_dir_all(folder.join("child")).unwrap();
    let limits = ManifestLimits { watched: 1, ..ManifestLimits::default() };
    let manifests = Manifests::new(["golem.yaml"]).directory(&folder).limits(limits);
    let host = host(&program().manifests(manifests));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    std::fs::write(folder.join("child/golem.yaml"), "a: 1\n").unwrap();
    assert_eq!(peer.receive().await["method"], "notifications/resources/list_changed");
}
