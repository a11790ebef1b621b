//! Authorization servers that are reached in the way of the MCP server: with a private certificate authority, through a proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Response, StatusCode};
use tokio::net::TcpListener;
use trunkline_client::ClientBuilder;
use trunkline_client::authorization::AuthorizationOptions;
use trunkline_client::transport::dial::ProxySettings;
use trunkline_server::http::{
    BearerTokens, HttpServerOptions, HttpService, IncomingRequest, McpResponseBody, ProtectedResource, serve,
};
use trunkline_server::{Host, HostOptions, Server, Tool};

use crate::test_server::{Certificate, TestProxy};
use crate::{DEADLINE, within};

const TOKEN: &str = "token-of-the-client-0123456789";

/// An MCP server with TLS that demands a token, and its authorization server, each at a port of its own.
struct ProtectedServer {
    url: String,
    issuer: String,
    /// The requests for tokens.
    issued: Arc<AtomicUsize>,
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    (listener, origin)
}

fn endpoint(options: HttpServerOptions) -> HttpService {
    let server = Server::new("protected").with(Tool::new("hello").run(|| async { "hello" }));
    Host::new(server.handle().unwrap(), HostOptions::default()).unwrap().http_service(options)
}

impl ProtectedServer {
    /// Starts both, with the certificate of each.
    async fn start(own: &Certificate, of_issuer: &Certificate) -> Self {
        let issued = Arc::<AtomicUsize>::default();
        let (listener, issuer) = listen().await;
        let (served, tokens) = (issuer.clone(), issued.clone());
        let service = move |request: IncomingRequest| {
            let answer = answer(&served, request.uri().path(), &tokens);
            async move { answer }
        };
        let front =
            endpoint(HttpServerOptions { tls: Some(of_issuer.tls()), ..HttpServerOptions::default() });
        tokio::spawn(async move { serve(listener, &front, service, DEADLINE).await });
        let (listener, origin) = listen().await;
        let url = format!("{origin}/mcp");
        let protected = endpoint(HttpServerOptions {
            tls: Some(own.tls()),
            authenticator: Arc::new(BearerTokens::new([("hub", TOKEN)])),
            protected_resource: Some(ProtectedResource::new(&*url).unwrap().authorization_server(&*issuer)),
            ..HttpServerOptions::default()
        });
        tokio::spawn(async move { serve(listener, &protected, protected.clone(), DEADLINE).await });
        Self { url, issuer, issued }
    }
}

fn answer(issuer: &str, path: &str, issued: &AtomicUsize) -> Response<McpResponseBody> {
    let (status, body) = match path {
        "/.well-known/oauth-authorization-server" => (
            StatusCode::OK,
            format!(
                r#"{{"issuer":"{issuer}","token_endpoint":"{issuer}/token","grant_types_supported":["client_credentials"]}}"#
            ),
        ),
        "/token" => {
            issued.fetch_add(1, Ordering::SeqCst);
            (StatusCode::OK, format!(r#"{{"access_token":"{TOKEN}","token_type":"Bearer"}}"#))
        }
        _ => (StatusCode::NOT_FOUND, "{}".to_owned()),
    };
    let mut response = Response::new(McpResponseBody::whole(body));
    *response.status_mut() = status;
    response
}

fn with_secret(builder: ClientBuilder) -> ClientBuilder {
    builder.authorization(AuthorizationOptions::client_secret("hub", "secret"))
}

#[tokio::test]
async fn authorization_servers_are_reached_with_the_authority_and_the_proxy_of_the_client() {
    let certificate = Certificate::new();
    let server = ProtectedServer::start(&certificate, &certificate).await;
    let proxy = TestProxy::start().await;
    for (case, proxies) in [("direct", ProxySettings::none()), ("proxy", proxy.proxies())] {
        let client = within(with_secret(certificate.trusting(proxies)).connect(&*server.url)).await.unwrap();
        assert_eq!(within(client.tools()).await.unwrap()[0].name, "hello", "{case}");
    }
    assert_eq!(server.issued.load(Ordering::SeqCst), 2);
    // The server, its metadata, those of the authorization server, and the token.
    assert!(proxy.tunnels.load(Ordering::SeqCst) >= 4, "{}", proxy.tunnels.load(Ordering::SeqCst));
    assert_eq!(proxy.requests.load(Ordering::SeqCst), 0, "TLS is tunnelled");
}

#[tokio::test]
async fn authorization_server_with_an_unknown_certificate_gets_no_secret() {
    let (known, unknown) = (Certificate::new(), Certificate::new());
    let server = ProtectedServer::start(&known, &unknown).await;
    let connecting = with_secret(known.trusting(ProxySettings::none())).connect(&*server.url);
    let refused = within(connecting).await.unwrap_err().to_string();
    assert!(refused.contains(&server.issuer) && refused.contains("TLS"), "{refused}");
    assert_eq!(server.issued.load(Ordering::SeqCst), 0);
}
