//! Transports over which no tokens are exchanged, since they are authorized once for all callers.

use trunkline_auth::authorizer::{
    AuthorizationGrant, AuthorizationOptions, Authorizer, SubjectToken, TokenExchangeSetup,
};
use trunkline_client::transport::dial::Dialer;
use trunkline_client::{ClientBuilder, Error, HttpTransportKind};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse};
use crate::test_server::direct;
use crate::within;

/// Begins a client that authorizes its requests with exchanged tokens.
fn exchanging(server: &ScriptedHttpServer) -> ClientBuilder {
    let grant = AuthorizationGrant::TokenExchange(TokenExchangeSetup {
        token_endpoint: "http://127.0.0.1:1/token".to_owned(),
        audience: None,
        subject_token: SubjectToken::default(),
    });
    let options = AuthorizationOptions::with_grant(grant);
    let authorizer = Authorizer::new(options, &server.url.parse().unwrap(), Dialer::default());
    direct().authorizer(authorizer.into())
}

#[tokio::test]
async fn token_exchange_is_refused_over_websockets_and_http_sse() {
    let server = ScriptedHttpServer::start(|_| ScriptedResponse::status(404, "")).await;
    let (http, websocket) = (server.url.clone(), server.url.replacen("http://", "ws://", 1));
    for (kind, url) in [(HttpTransportKind::Sse, http), (HttpTransportKind::Any, websocket)] {
        let connecting = exchanging(&server).http_transport(kind).connect(url.as_str());
        let Err(Error::InvalidOptions { cause, .. }) = within(connecting).await else { panic!("{url}") };
        assert!(cause.contains("over Streamable HTTP only"), "{url}: {cause}");
    }
    assert!(server.request_names().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn token_exchange_does_not_fall_back_to_http_sse() {
    let server = ScriptedHttpServer::start(|_| ScriptedResponse::status(404, "")).await;
    let connecting = exchanging(&server).connect(server.url.as_str());
    assert!(matches!(within(connecting).await, Err(Error::Unreachable(_))));
    assert_eq!(server.request_names(), ["server/discover", "initialize"]);
}
