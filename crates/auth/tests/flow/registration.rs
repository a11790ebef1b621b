//! How the client is known to authorization servers.

use trunkline_auth::flow::{FlowFailure, FlowStep};
use trunkline_auth::registration::{
    ClientCredential, ClientDocument, PreregisteredClient, RegistrationSource,
};
use trunkline_transport::Secret;

use crate::driver::{CannedServer, MCP, REDIRECT, challenged, config, server_document};

const CLIENT_URL: &str = "https://conformance-test.local/client-metadata.json";

#[test]
fn client_metadata_document_is_used_if_supported() {
    for (extra, expected) in
        [(r#","client_id_metadata_document_supported":true"#, CLIENT_URL), ("", "dynamic")]
    {
        let mut server = CannedServer::usual();
        server.server_metadata(extra);
        let mut config = config();
        config.client_document = ClientDocument::new(CLIENT_URL, ClientCredential::Public).ok();
        let outcome = server.run(config, challenged("Bearer")).unwrap();
        assert_eq!(server.page_parameter("client_id").as_deref(), Some(expected));
        assert_eq!(outcome.client.unwrap().client_id, expected);
    }
}

#[test]
fn preregistered_client_authenticates_with_its_secret() {
    let mut server = CannedServer::usual();
    let body =
        server_document("https://as.example", "https://as.example", "").replace("registration_endpoint", "x");
    server.json("GET https://as.example/.well-known/oauth-authorization-server", 200, &body);
    let mut config = config();
    config.preregistered = vec![PreregisteredClient {
        issuer: Some("https://as.example".to_owned()),
        client_id: "pre".to_owned(),
        credential: ClientCredential::Secret(Secret::new("secret")),
    }];
    let outcome = server.run(config.clone(), challenged("Bearer")).unwrap();
    assert_eq!(outcome.client.unwrap().source, RegistrationSource::Preregistered);
    // `pre:secret` in Base64.
    assert_eq!(server.seen.last().unwrap().headers.get("authorization").unwrap(), "Basic cHJlOnNlY3JldA==");

    // Registered at another issuer it is not sent.
    config.preregistered[0].issuer = Some("https://other.example".to_owned());
    server.callback = None;
    let error = server.run(config, challenged("Bearer")).unwrap_err();
    assert_eq!(error.step(), FlowStep::Registration);
    assert_eq!(error.failure(), &FlowFailure::NoClient("https://as.example".to_owned()));
}

#[test]
fn token_requests_use_the_method_that_the_server_lists() {
    let table =
        [("client_secret_basic", true, false), ("client_secret_post", false, true), ("none", false, false)];
    for (method, has_header, has_secret) in table {
        let mut server = CannedServer::usual();
        server.server_metadata(&format!(r#","token_endpoint_auth_methods_supported":["{method}"]"#));
        let secret = if method == "none" { "" } else { r#","client_secret":"s""# };
        let body = format!(r#"{{"client_id":"c"{secret},"token_endpoint_auth_method":"{method}"}}"#);
        server.json("POST https://as.example/register", 201, &body);
        server.run(config(), challenged("Bearer")).unwrap();
        let registration = server.body_of("POST https://as.example/register").to_owned();
        assert!(
            registration.contains(&format!(r#""token_endpoint_auth_method":"{method}""#)),
            "{registration}"
        );
        assert!(registration.contains(r#""application_type":"native""#), "{registration}");
        assert!(registration.contains("refresh_token"), "{registration}");
        let token = server.seen.last().unwrap();
        assert_eq!(token.headers.contains_key("authorization"), has_header, "{method}");
        assert_eq!(token.body.contains("client_secret=s"), has_secret, "{method}");
    }
}

#[test]
fn new_authorization_server_gets_a_new_registration() {
    let mut server = CannedServer::usual();
    let body = r#"{"client_id":"first","client_secret":"first-secret"}"#;
    server.json("POST https://as.example/register", 201, body);
    let first = server.run(config(), challenged("Bearer")).unwrap().client.unwrap();
    assert_eq!(
        (first.issuer.as_str(), first.redirect_uri.as_deref()),
        ("https://as.example", Some(REDIRECT))
    );

    let mut config = config();
    config.registrations = vec![first];
    // The same authorization server: the registration is used again.
    server.seen.clear();
    server.run(config.clone(), challenged("Bearer")).unwrap();
    assert!(!server.lines().contains(&"POST https://as.example/register"));

    // Another one: it gets neither the identifier nor the secret.
    let body = format!(r#"{{"resource":"{MCP}","authorization_servers":["https://as2.example"]}}"#);
    server.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 200, &body);
    let body = server_document("https://as2.example", "https://as2.example", "");
    server.json("GET https://as2.example/.well-known/oauth-authorization-server", 200, &body);
    server.json("POST https://as2.example/register", 201, r#"{"client_id":"second"}"#);
    server.json("POST https://as2.example/token", 200, r#"{"access_token":"t2"}"#);
    server.seen.clear();
    server.pages.clear();
    let second = server.run(config, challenged("Bearer")).unwrap();
    assert_eq!(second.client.unwrap().client_id, "second");
    let sent = format!("{:?} {:?}", server.seen, server.pages);
    assert!(server.lines().contains(&"POST https://as2.example/register"));
    assert!(!sent.contains("first"), "{sent}");
}

#[test]
fn refused_registration_is_reported_with_its_error() {
    let mut server = CannedServer::usual();
    let body = r#"{"error":"invalid_client_metadata","error_description":"no native clients"}"#;
    server.json("POST https://as.example/register", 400, body);
    let error = server.run(config(), challenged("Bearer")).unwrap_err();
    assert_eq!(error.oauth_error().unwrap().code(), "invalid_client_metadata");
    assert_eq!(error.url(), Some("https://as.example/register"));
}
