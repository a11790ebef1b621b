use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, header};
use http_body::Body;
use trunkline_http1::server::RequestHead;
use trunkline_protocol::{Era, Refusal};

use super::body::McpResponseBody;
use super::cors;
use super::endpoint::HttpServiceInner;
use super::mcp_headers::McpHeaders;
use super::options::{HttpServerOptions, SsePaths};
use super::refusal_response::{header_revision, refusal_response};

/// The purpose of a path.
#[derive(Clone, Copy)]
enum HttpRoute<'a> {
    Endpoint,
    LegacySse(&'a SsePaths),
    WebSocket,
}

impl HttpServiceInner {
    /// Answers every request that is not a message to the endpoint; `Host` and `Origin` were checked before.
    pub(super) async fn serve_other_route<B>(
        self: &Arc<Self>,
        head: &RequestHead,
        headers: &McpHeaders<'_>,
        body: B,
    ) -> Response<McpResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        let keeps_sessions = self.core.revisions.newest_of(Era::Legacy).is_some();
        let Some(route) = find_route(&self.options, keeps_sessions, head.path()) else {
            return refusal_response(&Refusal::NO_SUCH_PATH, None, header_revision(headers));
        };
        let mut response = self.serve_route(route, head, headers, body).await;
        if matches!(route, HttpRoute::LegacySse(_)) && self.options.cookie_sessions.is_some() {
            cors::allow_credentials(head.parts(), &self.options.origins, &mut response);
        }
        response
    }

    async fn serve_route<B>(
        self: &Arc<Self>,
        route: HttpRoute<'_>,
        head: &RequestHead,
        headers: &McpHeaders<'_>,
        body: B,
    ) -> Response<McpResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        if *head.method() == Method::OPTIONS {
            return cors::preflight(head.parts(), &self.core.env);
        }
        let sender = match self.authenticate(|| head.parts()).wait().await {
            Ok(sender) => sender,
            Err(refusal) => return self.auth_response(refusal),
        };
        let mut response = match route {
            HttpRoute::Endpoint => {
                let answered = match *head.method() {
                    Method::GET => self.handle_get(head, headers, &sender.principal).await,
                    Method::DELETE => self.handle_delete(headers, &sender.principal).await,
                    _ => Err((Refusal::NOT_ALLOWED, None)),
                };
                answered.unwrap_or_else(|(refusal, id)| {
                    let revision = self.refusal_revision(headers, &sender.principal);
                    refusal_response(&refusal, id.as_ref(), revision)
                })
            }
            HttpRoute::LegacySse(paths) => self.handle_sse(paths, head, headers, body, &sender).await,
            HttpRoute::WebSocket => match self.upgrade(head, sender.clone()) {
                Ok(response) => response,
                Err(refusal) => refusal_response(&refusal, None, header_revision(headers)),
            },
        };
        sender.finish(&mut response);
        if let Some(allow) = response.headers_mut().get_mut(header::ALLOW) {
            *allow = match route {
                HttpRoute::Endpoint => HeaderValue::from_static("POST, GET, DELETE, OPTIONS"),
                HttpRoute::LegacySse(paths) if paths.messages == head.path() => {
                    HeaderValue::from_static("POST, OPTIONS")
                }
                _ => HeaderValue::from_static("GET, OPTIONS"),
            };
        }
        response
    }
}

/// Returns the route of a path; HTTP+SSE belongs to the legacy era alone.
fn find_route<'a>(options: &'a HttpServerOptions, keeps_sessions: bool, path: &str) -> Option<HttpRoute<'a>> {
    if options.is_endpoint(path) {
        return Some(HttpRoute::Endpoint);
    }
    let is_pair = |paths: &&SsePaths| keeps_sessions && (paths.stream == path || paths.messages == path);
    let pair = options.legacy_sse.as_ref().filter(is_pair);
    let socket = options.websocket.as_deref().filter(|socket| *socket == path);
    pair.map(HttpRoute::LegacySse).or_else(|| socket.map(|_| HttpRoute::WebSocket))
}
