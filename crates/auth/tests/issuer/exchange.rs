//! The exchange of a caller's token at a token endpoint.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::json;
use trunkline_auth::authorizer::{
    AuthorizationError, AuthorizationGrant, AuthorizationOptions, Authorizer, CallerToken, SubjectToken,
    TokenExchangeSetup,
};
use trunkline_auth::registration::ClientCredential;
use trunkline_transport::Secret;
use trunkline_transport::dial::Dialer;

use crate::issuer_server::IssuerServer;

const SERVER: &str = "https://mcp.example/mcp";

/// The authorizer of requests to a server, for which the issuer exchanges tokens.
async fn start() -> (IssuerServer, Arc<Authorizer>) {
    let issuer = IssuerServer::start().await;
    issuer.set_document("/token", json!({ "access_token": "exchanged", "token_type": "Bearer" }));
    let grant = AuthorizationGrant::TokenExchange(TokenExchangeSetup {
        token_endpoint: format!("{}/token", issuer.issuer()),
        audience: None,
        subject_token: SubjectToken::default(),
    });
    let credential = ClientCredential::Secret(Secret::new("secret"));
    let options = AuthorizationOptions::with_grant(grant).with_client("hub", credential);
    let authorizer = Authorizer::new(options, &SERVER.parse().unwrap(), Dialer::default());
    (issuer, Arc::new(authorizer))
}

fn caller(token: &str, expires_at: SystemTime) -> CallerToken {
    CallerToken::new(Secret::new(token), Some(expires_at))
}

/// Makes a request that the server refuses without a token, and returns the headers with which it is sent again.
async fn headers(authorizer: Arc<Authorizer>, token: CallerToken) -> Result<HeaderMap, AuthorizationError> {
    let authorizer = authorizer.acting_for(Some(&token));
    let mut attempt = authorizer.begin("tools/call");
    let uri = Uri::from_static(SERVER);
    let first = attempt.headers(&Method::POST, &uri).await?;
    if !first.is_empty() {
        return Ok(first);
    }
    assert!(attempt.is_refused(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await?);
    attempt.headers(&Method::POST, &uri).await
}

#[tokio::test]
async fn expired_token_of_a_caller_is_not_exchanged() {
    let (issuer, authorizer) = start().await;
    let present = SystemTime::now();
    for (token, expires_at) in [("now", present), ("before", present - Duration::from_secs(60))] {
        let refused = headers(authorizer.clone(), caller(token, expires_at)).await.unwrap_err();
        assert!(matches!(refused, AuthorizationError::SubjectTokenExpired), "{refused}");
    }
    assert_eq!(issuer.requests("/token"), 0);
    let sent = headers(authorizer, caller("later", present + Duration::from_secs(60))).await.unwrap();
    assert_eq!(sent["authorization"], "Bearer exchanged");
}

#[tokio::test]
async fn exchanged_token_is_not_used_if_the_callers_has_expired_meanwhile() {
    let (issuer, authorizer) = start().await;
    issuer.set_open(false);
    let expires_at = SystemTime::now() + Duration::from_secs(1);
    let request = tokio::spawn(headers(authorizer, caller("short", expires_at)));
    issuer.wait_for_requests("/token", 1).await;
    while SystemTime::now() <= expires_at {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    issuer.set_open(true);
    let refused = request.await.unwrap().unwrap_err();
    assert!(matches!(refused, AuthorizationError::SubjectTokenExpired), "{refused}");
}
