//! Discovery: the variants of the conformance suite, and documents that must not be used.

use trunkline_auth::flow::{FlowFailure, FlowStep};
use trunkline_auth::server_metadata::MetadataError;

use crate::driver::{CannedServer, MCP, challenged, config, parameter, server_document};

/// Where a variant of the suite has its documents.
struct MetadataVariant {
    challenge: &'static str,
    resource_url: &'static str,
    issuer: &'static str,
    server_url: &'static str,
    /// The metadata requests, the last of each kind being the one that succeeds.
    requests: &'static [&'static str],
}

const VARIANTS: &[MetadataVariant] = &[
    // metadata-default
    MetadataVariant {
        challenge: r#"Bearer resource_metadata="http://localhost:1/.well-known/oauth-protected-resource/mcp""#,
        resource_url: "http://localhost:1/.well-known/oauth-protected-resource/mcp",
        issuer: "https://as.example",
        server_url: "https://as.example/.well-known/oauth-authorization-server",
        requests: &[
            "GET http://localhost:1/.well-known/oauth-protected-resource/mcp",
            "GET https://as.example/.well-known/oauth-authorization-server",
        ],
    },
    // metadata-var1
    MetadataVariant {
        challenge: "Bearer",
        resource_url: "http://localhost:1/.well-known/oauth-protected-resource/mcp",
        issuer: "https://as.example",
        server_url: "https://as.example/.well-known/openid-configuration",
        requests: &[
            "GET http://localhost:1/.well-known/oauth-protected-resource/mcp",
            "GET https://as.example/.well-known/oauth-authorization-server",
            "GET https://as.example/.well-known/openid-configuration",
        ],
    },
    // metadata-var2
    MetadataVariant {
        challenge: "Bearer",
        resource_url: "http://localhost:1/.well-known/oauth-protected-resource",
        issuer: "https://as.example/tenant1",
        server_url: "https://as.example/.well-known/oauth-authorization-server/tenant1",
        requests: &[
            "GET http://localhost:1/.well-known/oauth-protected-resource/mcp",
            "GET http://localhost:1/.well-known/oauth-protected-resource",
            "GET https://as.example/.well-known/oauth-authorization-server/tenant1",
        ],
    },
    // metadata-var3
    MetadataVariant {
        challenge: "Bearer resource_metadata=\"http://localhost:1/custom/metadata.json\"",
        resource_url: "http://localhost:1/custom/metadata.json",
        issuer: "https://as.example/tenant1",
        server_url: "https://as.example/tenant1/.well-known/openid-configuration",
        requests: &[
            "GET http://localhost:1/custom/metadata.json",
            "GET https://as.example/.well-known/oauth-authorization-server/tenant1",
            "GET https://as.example/.well-known/openid-configuration/tenant1",
            "GET https://as.example/tenant1/.well-known/openid-configuration",
        ],
    },
];

#[test]
fn metadata_are_found_in_every_variant() {
    for variant in VARIANTS {
        let mut server = CannedServer::new();
        let body = format!(r#"{{"resource":"{MCP}","authorization_servers":["{}"]}}"#, variant.issuer);
        server.json(&format!("GET {}", variant.resource_url), 200, &body);
        let body = server_document(variant.issuer, "https://as.example", "");
        server.json(&format!("GET {}", variant.server_url), 200, &body);
        server.json("POST https://as.example/register", 201, r#"{"client_id":"dynamic"}"#);
        server.token();
        let outcome = server.run(config(), challenged(variant.challenge)).unwrap();
        let mut expected = variant.requests.to_vec();
        expected.extend(["POST https://as.example/register", "POST https://as.example/token"]);
        assert_eq!(server.lines(), expected);
        assert_eq!(outcome.tokens.context.issuer, variant.issuer);
        assert_eq!(outcome.tokens.access_token.expose(), "the-token");
        // The resource is sent byte for byte in both requests.
        assert_eq!(server.page_parameter("resource").as_deref(), Some(MCP));
        let body = server.body_of("POST https://as.example/token");
        assert_eq!(parameter(body, "resource").as_deref(), Some(MCP));
        assert!(body.contains("code_verifier=") && body.contains("client_id=dynamic"));
        assert_eq!(server.page_parameter("code_challenge_method").as_deref(), Some("S256"));
    }
}

#[test]
fn root_resource_is_sent_verbatim() {
    for resource in ["http://localhost:1", "http://localhost:1/"] {
        let mut server = CannedServer::usual();
        let body = format!(r#"{{"resource":"{resource}","authorization_servers":["https://as.example"]}}"#);
        server.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 200, &body);
        let outcome = server.run(config(), challenged("Bearer")).unwrap();
        assert_eq!(server.page_parameter("resource").as_deref(), Some(resource));
        assert_eq!(outcome.tokens.context.resource.as_deref(), Some(resource));
    }
}

#[test]
fn metadata_of_another_resource_end_the_flow() {
    let mut server = CannedServer::usual();
    server.callback = None;
    let body =
        r#"{"resource":"https://evil.example.com/mcp","authorization_servers":["https://as.example"]}"#;
    server.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 200, body);
    let error = server.run(config(), challenged("Bearer")).unwrap_err();
    assert_eq!(error.step(), FlowStep::ResourceMetadata);
    assert!(matches!(error.failure(), FlowFailure::ResourceMismatch { .. }), "{error}");
    assert_eq!(server.seen.len(), 1);
}

#[test]
fn metadata_of_another_issuer_are_not_used() {
    let mut server = CannedServer::usual();
    server.callback = None;
    let body = server_document("https://evil.example", "https://as.example/mismatched-as", "");
    server.json("GET https://as.example/.well-known/oauth-authorization-server", 200, &body);
    let error = server.run(config(), challenged("Bearer")).unwrap_err();
    assert_eq!(error.step(), FlowStep::ServerMetadata);
    let failure = FlowFailure::Metadata(MetadataError::IssuerMismatch {
        expected: "https://as.example".to_owned(),
        found: "https://evil.example".to_owned(),
    });
    assert_eq!(error.failure(), &failure);
    assert_eq!(error.url(), Some("https://as.example/.well-known/oauth-authorization-server"));
    assert!(!server.lines().iter().any(|line| line.starts_with("POST")));
}

#[test]
fn authorization_server_without_s256_is_refused() {
    let mut server = CannedServer::usual();
    server.callback = None;
    let body = r#"{"issuer":"https://as.example","authorization_endpoint":"https://as.example/authorize",
        "token_endpoint":"https://as.example/token"}"#;
    server.json("GET https://as.example/.well-known/oauth-authorization-server", 200, body);
    let error = server.run(config(), challenged("Bearer")).unwrap_err();
    assert_eq!(error.failure(), &FlowFailure::Metadata(MetadataError::NoPkce));
}

#[test]
fn html_in_the_place_of_metadata_counts_as_missing() {
    let mut server = CannedServer::usual();
    let html = "<!doctype html><html></html>";
    server.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 200, html);
    let body = format!(r#"{{"resource":"{MCP}","authorization_servers":["https://as.example"]}}"#);
    server.json("GET http://localhost:1/.well-known/oauth-protected-resource", 200, &body);
    assert!(server.run(config(), challenged("Bearer")).is_ok());
}

#[test]
fn next_authorization_server_is_tried_if_one_is_down() {
    let mut server = CannedServer::usual();
    let body = format!(
        r#"{{"resource":"{MCP}","authorization_servers":["http://plain.example","https://down.example","https://as.example"]}}"#
    );
    server.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 200, &body);
    let outcome = server.run(config(), challenged("Bearer")).unwrap();
    assert_eq!(outcome.tokens.context.issuer, "https://as.example");
    assert!(!server.lines().iter().any(|line| line.contains("plain.example")));
}

#[test]
fn errors_list_where_metadata_were_looked_for() {
    let mut server = CannedServer::new();
    let body = format!(r#"{{"resource":"{MCP}","authorization_servers":["https://down.example"]}}"#);
    server.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 200, &body);
    let error = server.run(config(), challenged("Bearer")).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("authorization server metadata failed at https://down.example/"), "{text}");
    assert!(text.contains("connection refused") && text.contains("openid-configuration"), "{text}");
}

#[test]
fn only_the_configured_issuer_is_used() {
    let pinned = |issuer: &str| {
        let mut config = config();
        config.issuer = Some(issuer.to_owned());
        config
    };
    let error = CannedServer::usual().run(pinned("https://other.example"), challenged("Bearer")).unwrap_err();
    assert_eq!(error.failure(), &FlowFailure::IssuerNotListed("https://other.example".to_owned()));
    assert!(CannedServer::usual().run(pinned("https://as.example"), challenged("Bearer")).is_ok());
    // Without protected resource metadata it takes their place.
    let mut server = CannedServer::usual();
    server.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 404, "");
    let outcome = server.run(pinned("https://as.example"), challenged("Bearer")).unwrap();
    assert_eq!(outcome.tokens.context.resource.as_deref(), Some(MCP));
}

#[test]
fn authorization_server_without_tls_is_refused() {
    let mut config = config();
    config.server_url = "http://mcp.example/mcp".to_owned();
    let error = CannedServer::usual().run(config, challenged("Bearer")).unwrap_err();
    assert!(matches!(error.failure(), FlowFailure::Endpoint(_)), "{error}");
}
