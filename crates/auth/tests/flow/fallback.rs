//! Servers of revision 2025-03-26, which are their own authorization servers.

use trunkline_auth::flow::{FlowFailure, FlowStep, FlowTrigger};

use crate::driver::{CannedServer, challenged, config, parameter, server_document};

#[test]
fn metadata_at_the_origin_are_used_without_resource_metadata() {
    let mut server = CannedServer::new();
    let body = server_document("http://localhost:1", "http://localhost:1/oauth", "");
    server.json("GET http://localhost:1/.well-known/oauth-authorization-server", 200, &body);
    server.json("POST http://localhost:1/oauth/register", 201, r#"{"client_id":"c"}"#);
    server.json("POST http://localhost:1/oauth/token", 200, r#"{"access_token":"t"}"#);
    let outcome = server.run(config(), challenged("Bearer")).unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET http://localhost:1/.well-known/oauth-protected-resource/mcp",
            "GET http://localhost:1/.well-known/oauth-protected-resource",
            "GET http://localhost:1/.well-known/oauth-authorization-server",
            "POST http://localhost:1/oauth/register",
            "POST http://localhost:1/oauth/token",
        ]
    );
    assert_eq!(server.seen[2].headers.get("mcp-protocol-version").unwrap(), "2025-03-26");
    assert_eq!((outcome.tokens.context.resource, server.page_parameter("resource")), (None, None));
    assert_eq!(outcome.tokens.context.issuer, "http://localhost:1");
}

#[test]
fn default_endpoints_are_used_without_any_metadata() {
    let mut server = CannedServer::new();
    let registered = r#"{"client_id":"test-client-id","client_secret":"test-client-secret"}"#;
    server.json("POST http://localhost:1/register", 201, registered);
    server.json("POST http://localhost:1/token", 200, r#"{"access_token":"t","token_type":"Bearer"}"#);
    server.run(config(), FlowTrigger::Login).unwrap();
    assert!(server.pages[0].starts_with("http://localhost:1/authorize?response_type=code&"));
    assert!(server.page_parameter("code_challenge").is_some());
    let token = server.seen.last().unwrap();
    assert_eq!(token.line, "POST http://localhost:1/token");
    assert!(token.headers.get("authorization").unwrap().to_str().unwrap().starts_with("Basic "));
    assert_eq!(parameter(&token.body, "grant_type").as_deref(), Some("authorization_code"));
}

#[test]
fn default_endpoints_are_not_used_after_an_issuer_mismatch() {
    let mut server = CannedServer::new();
    let body = server_document("https://evil.example", "https://evil.example", "");
    server.json("GET http://localhost:1/.well-known/oauth-authorization-server", 200, &body);
    let error = server.run(config(), challenged("Bearer")).unwrap_err();
    assert_eq!(error.step(), FlowStep::ServerMetadata);
    assert!(matches!(error.failure(), FlowFailure::Metadata(_)));
}

#[test]
fn server_without_metadata_fails_at_registration_with_all_attempts() {
    let error = CannedServer::new().run(config(), challenged("Bearer")).unwrap_err();
    assert_eq!(error.step(), FlowStep::Registration);
    let text = error.to_string();
    assert!(text.starts_with("client registration failed at http://localhost:1/register: "), "{text}");
    assert!(text.contains("oauth-protected-resource/mcp: the response has the status 404"), "{text}");
    assert_eq!(error.attempts().len(), 3);
}
