use std::collections::BTreeMap;

use serde_json::json;
use trunkline::prelude::*;

use crate::support::{only, request};

/// What this is.
#[resource("demo://about", title = "About", mime = "text/markdown")]
async fn about() -> &'static str {
    "# A test"
}

/// A user's profile.
#[resource("users://{id}/profile{?verbose}", name = "user profile")]
async fn profile(
    #[complete(ids)] id: u64,
    context: Context,
    #[rename("verbose")] long: Option<bool>,
) -> String {
    format!("user {id} {long:?} {}", context.revision())
}

async fn ids(_: String, _: BTreeMap<String, String>) -> Vec<String> {
    vec!["7".to_owned()]
}

#[tokio::test]
async fn uri_without_variables_makes_a_resource() {
    let server = Server::new("test").with(about);
    let expected = json!({
        "uri": "demo://about",
        "name": "about",
        "title": "About",
        "description": "What this is.",
        "mimeType": "text/markdown",
    });
    assert_eq!(only(&server, "resources/list", "resources").await, expected);
    let read = request(&server, "resources/read", json!({ "uri": "demo://about" })).await;
    let contents = json!([{ "uri": "demo://about", "mimeType": "text/markdown", "text": "# A test" }]);
    assert_eq!(read["contents"], contents);
}

#[tokio::test]
async fn uri_with_variables_makes_a_template() {
    let server = Server::new("test").with(profile);
    let expected = json!({
        "uriTemplate": "users://{id}/profile{?verbose}",
        "name": "user profile",
        "description": "A user's profile.",
    });
    assert_eq!(only(&server, "resources/templates/list", "resourceTemplates").await, expected);
    for (uri, expected) in [
        ("users://7/profile", "user 7 None 2026-07-28"),
        ("users://7/profile?verbose=true", "user 7 Some(true) 2026-07-28"),
    ] {
        let read = request(&server, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["contents"][0]["text"], expected, "{read}");
    }
    let unfit = request(&server, "resources/read", json!({ "uri": "users://me/profile" })).await;
    assert_eq!(unfit["code"], -32602, "{unfit}");
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "users://{id}/profile{?verbose}" },
        "argument": { "name": "id", "value": "" },
    });
    let completed = request(&server, "completion/complete", params).await;
    assert_eq!(completed["completion"]["values"], json!(["7"]));
}
