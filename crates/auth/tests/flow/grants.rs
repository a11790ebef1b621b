//! Grants without a user, and DPoP.

use bytes::Bytes;
use http::Response;
use trunkline_auth::flow::{DpopPolicy, EnterpriseSetup, FlowConfig, FlowFailure, FlowGrant, FlowStep};
use trunkline_auth::registration::{ClientCredential, PreregisteredClient};
use trunkline_auth::token_request::{ID_JAG_TOKEN_TYPE, ID_TOKEN_TYPE, JWT_BEARER_GRANT};
use trunkline_auth::token_response::TokenResponseError;
use trunkline_auth::token_set::AccessTokenKind;
use trunkline_transport::Secret;

use crate::driver::{CannedServer, MCP, challenged, config, parameter};

const TOKEN: &str = "POST https://as.example/token";

fn with_client(grant: FlowGrant, credential: ClientCredential) -> FlowConfig {
    let mut config = config();
    config.grant = grant;
    config.preregistered =
        vec![PreregisteredClient { issuer: None, client_id: "client".to_owned(), credential }];
    config
}

fn server_without_user() -> CannedServer {
    let mut server = CannedServer::usual();
    server.callback = None;
    // No authorization endpoint, no PKCE, no registration.
    let body = r#"{"issuer":"https://as.example","token_endpoint":"https://as.example/token",
        "token_endpoint_auth_signing_alg_values_supported":["ES256"],"scopes_supported":["offline_access"]}"#;
    server.json("GET https://as.example/.well-known/oauth-authorization-server", 200, body);
    server
}

#[test]
fn client_credentials_are_sent_with_a_secret() {
    let mut server = server_without_user();
    let config = with_client(FlowGrant::ClientCredentials, ClientCredential::Secret(Secret::new("s")));
    let outcome = server.run(config, challenged("Bearer scope=\"mcp:use\"")).unwrap();
    let request = server.seen.last().unwrap();
    assert_eq!(
        request.body,
        "grant_type=client_credentials&resource=http%3A%2F%2Flocalhost%3A1%2Fmcp&scope=mcp%3Ause"
    );
    assert!(request.headers.contains_key("authorization"));
    assert_eq!(outcome.tokens.context.requested.to_string(), "mcp:use");
}

#[test]
fn client_credentials_are_sent_with_an_assertion() {
    let mut server = server_without_user();
    let config = with_client(FlowGrant::ClientCredentials, ClientCredential::PrivateKey);
    server.run(config, challenged("Bearer")).unwrap();
    let body = server.body_of(TOKEN);
    assert_eq!(parameter(body, "client_assertion").as_deref(), Some("jwt1-client-https://as.example"));
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    assert_eq!(parameter(body, "client_assertion_type").as_deref(), Some(kind));
}

#[test]
fn client_credentials_without_a_client_fail_without_registration() {
    let mut server = CannedServer::usual();
    let mut config = config();
    config.grant = FlowGrant::ClientCredentials;
    let error = server.run(config, challenged("Bearer")).unwrap_err();
    assert_eq!(error.failure(), &FlowFailure::NoClient("https://as.example".to_owned()));
}

#[test]
fn enterprise_authorization_exchanges_an_id_token_for_an_assertion() {
    let setup = EnterpriseSetup {
        token_endpoint: "https://idp.example/token".to_owned(),
        client_id: "idp-client".to_owned(),
        client_secret: None,
        subject_token: Secret::new("id-token"),
        subject_token_type: ID_TOKEN_TYPE.to_owned(),
    };
    let credential = ClientCredential::Secret(Secret::new("s"));
    let config = with_client(FlowGrant::EnterpriseManaged(setup), credential);
    let mut server = server_without_user();
    let body = format!(
        r#"{{"access_token":"id-jag","token_type":"N_A","issued_token_type":"{ID_JAG_TOKEN_TYPE}"}}"#
    );
    server.json("POST https://idp.example/token", 200, &body);
    server.run(config.clone(), challenged("Bearer")).unwrap();
    let exchange = server.body_of("POST https://idp.example/token");
    let expected = [
        ("requested_token_type", ID_JAG_TOKEN_TYPE),
        ("audience", "https://as.example"),
        ("resource", MCP),
        ("subject_token", "id-token"),
        ("subject_token_type", ID_TOKEN_TYPE),
        ("client_id", "idp-client"),
    ];
    for (name, value) in expected {
        assert_eq!(parameter(exchange, name).as_deref(), Some(value), "{name}");
    }
    let token = server.seen.last().unwrap();
    assert_eq!(parameter(&token.body, "grant_type").as_deref(), Some(JWT_BEARER_GRANT));
    assert_eq!(parameter(&token.body, "assertion").as_deref(), Some("id-jag"));
    assert!(token.headers.contains_key("authorization"));

    // A token of another type is not presented.
    let body = r#"{"access_token":"t","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}"#;
    server.json("POST https://idp.example/token", 200, body);
    let error = server.run(config, challenged("Bearer")).unwrap_err();
    assert_eq!(error.step(), FlowStep::IdentityProvider);
    assert_eq!(error.url(), Some("https://idp.example/token"));
}

#[test]
fn workload_presents_its_assertion_once() {
    let grant = FlowGrant::WorkloadIdentity { assertion: Secret::new("platform-jwt") };
    let mut server = server_without_user();
    let mut anonymous = config();
    anonymous.grant = grant.clone();
    let outcome = server.run(anonymous, challenged("Bearer")).unwrap();
    assert_eq!(outcome.client, None);
    assert_eq!(parameter(server.body_of(TOKEN), "client_id"), None);

    let config = with_client(grant, ClientCredential::Public);
    server.json(TOKEN, 400, r#"{"error":"invalid_grant"}"#);
    server.seen.clear();
    let error = server.run(config, challenged("Bearer")).unwrap_err();
    assert_eq!(error.oauth_error().unwrap().code(), "invalid_grant");
    let requests = server.lines().iter().filter(|line| **line == TOKEN).count();
    assert_eq!(requests, 1, "a rejected assertion is not repeated");
    let body = server.body_of(TOKEN);
    assert_eq!(parameter(body, "grant_type").as_deref(), Some(JWT_BEARER_GRANT));
    assert_eq!(parameter(body, "assertion").as_deref(), Some("platform-jwt"));
    assert_eq!(parameter(body, "client_id").as_deref(), Some("client"));
    assert_eq!(parameter(body, "resource").as_deref(), Some(MCP));
}

#[test]
fn dpop_is_used_if_both_servers_announce_it() {
    const ALGORITHMS: &str = r#","dpop_signing_alg_values_supported":["ES256"]"#;
    let table = [
        (DpopPolicy::Off, "DPoP", ALGORITHMS, 0),
        (DpopPolicy::IfAnnounced, "DPoP", ALGORITHMS, 1),
        (DpopPolicy::IfAnnounced, "Bearer", ALGORITHMS, 0),
        (DpopPolicy::IfAnnounced, "DPoP", "", 0),
    ];
    for (policy, challenge, extra, proofs) in table {
        let mut server = CannedServer::usual();
        server.server_metadata(extra);
        let mut config = config();
        config.dpop = policy;
        config.dpop_thumbprint = Some("thumbprint".to_owned());
        server.run(config, challenged(challenge)).unwrap();
        assert_eq!(server.proofs.len(), proofs, "{policy:?} {challenge}");
        assert_eq!(server.page_parameter("dpop_jkt").is_some(), proofs > 0);
    }
}

#[test]
fn demanded_nonce_repeats_the_token_request_with_a_new_assertion() {
    let mut server = server_without_user();
    server.json(TOKEN, 200, r#"{"access_token":"t","token_type":"DPoP"}"#);
    let demand = Response::builder().status(400).header("DPoP-Nonce", "n1");
    server.first(TOKEN, demand.body(Bytes::from(r#"{"error":"use_dpop_nonce"}"#)).unwrap());
    let mut config = with_client(FlowGrant::ClientCredentials, ClientCredential::PrivateKey);
    config.dpop = DpopPolicy::Required;
    let outcome = server.run(config, challenged("DPoP")).unwrap();
    assert_eq!(outcome.tokens.kind, AccessTokenKind::Dpop);
    assert_eq!(server.proofs, [None, Some("n1".to_owned())]);
    assert_eq!(server.assertions, 2);
}

#[test]
fn token_without_dpop_is_refused_where_required() {
    let mut server = CannedServer::usual();
    let mut config = config();
    config.dpop = DpopPolicy::Required;
    let error = server.run(config, challenged("DPoP")).unwrap_err();
    assert_eq!(error.failure(), &FlowFailure::TokenNotBound);
}

#[test]
fn token_that_is_bound_although_no_proof_was_sent_is_refused() {
    for policy in [DpopPolicy::Off, DpopPolicy::IfAnnounced] {
        let mut server = CannedServer::usual();
        server.json(TOKEN, 200, r#"{"access_token":"t","token_type":"DPoP"}"#);
        let mut config = config();
        config.dpop = policy;
        let error = server.run(config, challenged("Bearer")).unwrap_err();
        assert!(matches!(error.failure(), FlowFailure::Token(TokenResponseError::TokenType(_))), "{error}");
    }
}
