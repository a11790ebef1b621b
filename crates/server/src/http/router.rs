use super::endpoint::HttpService;
use super::well_known::SERVER_METADATA;

impl HttpService {
    /// Returns an axum router with the endpoint and its companions (HTTP+SSE, WebSocket, metadata) at their paths, to be merged
    /// into a program's own.
    ///
    /// A program that serves the router by itself calls [`HttpService::sweep`] from time to time.
    pub fn into_router(self) -> axum::Router {
        let options = &self.inner.options;
        let mut paths = vec![options.path.clone()];
        paths.extend(options.websocket.clone());
        self.inner.with_protected_resource(|resource| {
            paths.extend(resource.into_iter().flat_map(|resource| resource.paths(&options.path)));
        });
        if options.authenticator.server_metadata().is_some() {
            paths.push(SERVER_METADATA.to_owned());
        }
        if let Some(pair) = &options.legacy_sse {
            paths.extend([pair.stream.clone(), pair.messages.clone()]);
        }
        // A route may be added only once.
        paths.sort();
        paths.dedup();
        paths.iter().fold(axum::Router::new(), |router, path| router.route_service(path, self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use http::{Request, StatusCode};
    use http_body_util::BodyExt as _;
    use hyper_util::rt::TokioIo;
    use serde_json::{Value, json};
    use tower_service::Service as _;

    use crate::http::HttpServerOptions;
    use crate::{HostOptions, Server, Tool};

    #[tokio::test]
    async fn axum_router_serves_only_the_endpoint_paths() {
        let server = Server::new("test").with(Tool::new("hello").run(async || "hi"));
        let service = server.host(HostOptions::default()).unwrap().http_service(HttpServerOptions::default());
        let mut router = service.into_router();
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "hello",
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        let request = |path: &str| {
            Request::post(path)
                .header("host", "localhost")
                .header("content-type", "application/json")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "hello")
                .body(axum::body::Body::from(body.to_string()))
                .unwrap()
        };
        let response = router.call(request("/mcp")).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let answer: Value =
            serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "hi");
        assert_eq!(router.call(request("/other")).await.unwrap().status(), StatusCode::NOT_FOUND);
        let messages = router.call(request("/messages")).await.unwrap();
        assert_eq!(messages.status(), StatusCode::BAD_REQUEST, "a message needs the session of its stream");
    }

    #[tokio::test]
    async fn axum_router_upgrades_websockets_where_hyper_supports_it() {
        let server = Server::new("test").with(Tool::new("hello").run(async || "hi"));
        let service = server.host(HostOptions::default()).unwrap().http_service(HttpServerOptions::default());
        let router = service.clone().into_router();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                router.clone().call(request.map(axum::body::Body::new))
            });
            let connection = hyper::server::conn::http1::Builder::new();
            connection.serve_connection(TokioIo::new(theirs), answer).with_upgrades().await
        });
        let (mut socket, _) = tokio_tungstenite::client_async("ws://localhost/ws", ours).await.unwrap();
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        }});
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "hello" } });
        for (message, expected) in [(hello, "serverInfo"), (call, r#""text":"hi""#)] {
            socket.send(message.to_string().into()).await.unwrap();
            let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
            assert!(answer.contains(expected), "{answer}");
        }
        assert_eq!(service.channels(), 1);
    }
}
