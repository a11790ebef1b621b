//! The public documents of a resource server, and CORS.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use trunkline_server::http::resource_server::DpopMode;

use super::ResourceFixture;
use super::issuer_server::RESOURCE;
use crate::http_client::{send, to};

async fn get(fixture: &ResourceFixture, method: &str, path: &str) -> (u16, http::HeaderMap, Value) {
    let request = to(fixture.service.address, method, path).header("origin", "https://any.example");
    let response = send(fixture.service.address, request, String::new()).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn resource_metadata_describe_issuers_scopes_and_dpop() {
    let fixture = ResourceFixture::start(|options, _| {
        options.optional_scopes.push("files:write".to_owned());
        options.metadata.insert("resource_name".to_owned(), "Hub".into());
    })
    .await;
    for path in ["", "/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let (status, headers, document) = get(&fixture, "GET", &path).await;
        assert_eq!(
            (status, &headers["access-control-allow-origin"]),
            (200, &http::HeaderValue::from_static("*"))
        );
        let expected = json!({
            "resource": RESOURCE,
            "authorization_servers": [fixture.issuer.issuer()],
            "scopes_supported": ["mcp:use", "files:write"],
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": ["ES256", "EdDSA"],
            "dpop_bound_access_tokens_required": false,
            "resource_name": "Hub",
        });
        assert_eq!(document, expected);
        assert_eq!(get(&fixture, "HEAD", &path).await.0, 200);
        assert_eq!(get(&fixture, "OPTIONS", &path).await.0, 204);
    }
    let mut options = super::options(&fixture.issuer);
    options.dpop = options.dpop.with_mode(DpopMode::Off);
    fixture.authenticator.replace(options).unwrap();
    let (_, _, document) = get(&fixture, "GET", "/.well-known/oauth-protected-resource").await;
    assert_eq!(document.get("dpop_signing_alg_values_supported"), None, "it follows the options");
}

#[tokio::test]
async fn metadata_of_the_authorization_server_are_mirrored_at_the_root() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    let path = "/.well-known/oauth-authorization-server";
    fixture.issuer.set_down(true);
    let (status, headers, _) = get(&fixture, "GET", path).await;
    assert_eq!((status, headers.contains_key("retry-after")), (503, true));
    let up = ResourceFixture::start(|_, _| {}).await;
    for _ in 0..3 {
        let (status, headers, document) = get(&up, "GET", path).await;
        assert_eq!(
            (status, &headers["access-control-allow-origin"]),
            (200, &http::HeaderValue::from_static("*"))
        );
        assert_eq!(document["issuer"], up.issuer.issuer());
        assert_eq!(document["token_endpoint"], format!("{}/token", up.issuer.issuer()));
    }
    assert_eq!(get(&up, "OPTIONS", path).await.0, 204);
    assert_eq!(up.issuer.requests(path), 1, "it is cached");
    for unknown in ["/.well-known/oauth-authorization-server/mcp", "/.well-known/openid-configuration"] {
        let request = to(up.service.address, "GET", unknown);
        let response = send(up.service.address, request, String::new()).await;
        assert_eq!(response.status(), 404, "{unknown}");
        assert_eq!(response.headers()["content-type"], "application/json");
    }
}

#[tokio::test]
async fn preflights_need_no_token_and_pages_can_read_challenges() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    let address = fixture.service.address;
    let origin = "http://localhost:3000";
    let preflight = to(address, "OPTIONS", "/mcp")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization, dpop");
    let response = send(address, preflight, String::new()).await;
    assert_eq!(response.status(), 204);
    let allowed = response.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.contains("Authorization") && allowed.contains("DPoP"), "{allowed}");
    let bare = send(address, to(address, "OPTIONS", "/mcp"), String::new()).await;
    assert_eq!(bare.status(), 204);
    let refused = fixture.call_with("/mcp", &[("origin", origin)]).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.headers["access-control-allow-origin"], origin);
    assert_eq!(
        refused.headers["access-control-expose-headers"],
        "WWW-Authenticate, Mcp-Session-Id, DPoP-Nonce"
    );
    let head = send(address, to(address, "HEAD", "/mcp"), String::new()).await;
    assert_eq!(head.status(), 401, "before any method is looked at");
    let bearer = format!("Bearer {}", fixture.token(json!({})));
    let head = to(address, "HEAD", "/mcp").header("authorization", bearer);
    assert_eq!(send(address, head, String::new()).await.status(), 405);
}
