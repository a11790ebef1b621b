//! The errors that caused an error of an exchange or a sign-in.

use std::error::Error;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode, Uri};
use trunkline_auth::authorizer::{
    AuthorizationGrant, AuthorizationOptions, Authorizer, CallerToken, SubjectToken, TokenExchangeSetup,
};
use trunkline_auth::endpoint_url::EndpointError;
use trunkline_auth::fetch::FetchError;
use trunkline_auth::flow::FlowFailure;
use trunkline_auth::registration::ClientCredential;
use trunkline_auth::scopes::ScopeSet;
use trunkline_auth::sign_in::SignInClient;
use trunkline_transport::Secret;
use trunkline_transport::dial::Dialer;

/// Looks for a cause of an error by its type.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let first = error.source();
    std::iter::successors(first, |&cause: &&(dyn Error + 'static)| cause.source())
        .find_map(|cause| cause.downcast_ref())
}

fn assert_without_secret(error: &(dyn Error + 'static)) {
    for error in std::iter::successors(Some(error), |&error: &&(dyn Error + 'static)| error.source()) {
        assert!(!format!("{error} {error:?}").contains("sentinel"), "{error:?}");
    }
}

/// Returns the URL of a port that no program listens on.
async fn closed_url() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn failed_exchange_has_the_failed_request_as_its_cause() {
    let grant = AuthorizationGrant::TokenExchange(TokenExchangeSetup {
        token_endpoint: format!("{}/token", closed_url().await),
        audience: None,
        subject_token: SubjectToken::default(),
    });
    let credential = ClientCredential::Secret(Secret::new("sentinel"));
    let options = AuthorizationOptions::with_grant(grant).with_client("hub", credential);
    let server = "https://mcp.example/mcp";
    let authorizer =
        std::sync::Arc::new(Authorizer::new(options, &server.parse().unwrap(), Dialer::default()));
    let token = CallerToken::new(Secret::new("sentinel"), Some(SystemTime::now() + Duration::from_secs(60)));
    let authorizer = authorizer.acting_for(Some(&token));
    let mut attempt = authorizer.begin("tools/call");
    attempt.headers(&Method::POST, &Uri::from_static(server)).await.unwrap();
    let error = attempt.is_refused(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await.unwrap_err();
    let failure: Option<&Box<FlowFailure>> = cause(&error);
    assert!(matches!(failure.map(|failure| &**failure), Some(FlowFailure::Fetch(_))), "{error:?}");
    assert!(matches!(cause(&error), Some(FetchError::Http { .. })), "{error:?}");
    assert_without_secret(&error);
}

#[tokio::test]
async fn failed_sign_in_has_the_failed_request_as_its_cause() {
    let begin = async |issuer: String| {
        let client = SignInClient {
            issuer,
            client_id: "hub".to_owned(),
            client_secret: Some(Secret::new("sentinel")),
            resource: "https://hub.example/mcp".to_owned(),
            scopes: ScopeSet::default(),
            dialer: Dialer::default(),
        };
        client.begin("http://127.0.0.1/callback").await.unwrap_err()
    };
    let error = begin(closed_url().await).await;
    assert!(matches!(cause(&error), Some(FetchError::Http { .. })), "{error:?}");
    assert_without_secret(&error);
    let error = begin("http://issuer.example".to_owned()).await;
    assert_eq!(cause(&error), Some(&EndpointError::PlainHttp), "{error:?}");
}
