//! The JWT of a workload, which only one authorization server gets.

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::json;
use trunkline_auth::authorizer::{AuthorizationError, AuthorizationOptions, Authorizer, CredentialSource};
use trunkline_auth::flow::FlowFailure;
use trunkline_auth::token_store::{MemoryTokenStore, TokenStore};
use trunkline_transport::Secret;
use trunkline_transport::dial::Dialer;

use crate::issuer_server::IssuerServer;

const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Makes a request to a server that demands a token, as a workload, with what the store has.
async fn call(server: &str, store: &Arc<dyn TokenStore>) -> Result<HeaderMap, AuthorizationError> {
    let jwt = CredentialSource::Value(Secret::new("jwt-of-the-platform"));
    let options = AuthorizationOptions::workload_identity(jwt).with_store(store.clone());
    let authorizer = Authorizer::new(options, &server.parse().unwrap(), Dialer::default());
    let uri: Uri = server.parse().unwrap();
    let mut attempt = authorizer.begin("tools/call");
    attempt.headers(&Method::POST, &uri).await?;
    assert!(attempt.is_refused(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await?);
    attempt.headers(&Method::POST, &uri).await
}

#[tokio::test]
async fn jwt_of_a_workload_is_sent_only_to_the_issuer_of_its_first_tokens() {
    let (server, issuer, other) =
        (IssuerServer::start().await, IssuerServer::start().await, IssuerServer::start().await);
    for issuer in [&issuer, &other] {
        issuer.set_document("/token", json!({ "access_token": "token", "token_type": "Bearer" }));
    }
    let url = format!("{}/mcp", server.issuer());
    let name = |issuer: &IssuerServer| {
        server.set_document(METADATA, json!({ "resource": url, "authorization_servers": [issuer.issuer()] }));
    };
    let store: Arc<dyn TokenStore> = Arc::new(MemoryTokenStore::default());
    name(&issuer);
    assert_eq!(call(&url, &store).await.unwrap()["authorization"], "Bearer token");
    name(&other);
    let refused = call(&url, &store).await.unwrap_err();
    let AuthorizationError::Flow(error) = &refused else { panic!("{refused}") };
    assert_eq!(*error.failure(), FlowFailure::IssuerNotListed(issuer.issuer()));
    assert_eq!((issuer.requests("/token"), other.requests("/token")), (1, 0));
}
