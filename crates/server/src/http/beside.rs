use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, header};
use http_body::Body;
use trunkline_protocol::{Era, Refusal};

use super::arrival::RequestHead;
use super::body::ResponseBody;
use super::cors;
use super::endpoint::Inner;
use super::heads::Heads;
use super::options::{HttpOptions, SsePaths};
use super::refused::{refused, spoken_by, unauthorized};

/// What a path is for.
#[derive(Clone, Copy)]
enum Place<'a> {
    Endpoint,
    SsePair(&'a SsePaths),
    WebSocket,
}

impl Inner {
    /// Answers whatever is not a message to the endpoint; `Host` and `Origin` were checked before.
    pub(super) async fn beside<B>(
        self: &Arc<Self>,
        head: &RequestHead,
        heads: &Heads<'_>,
        body: B,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        let keeps_sessions = self.core.revisions.newest_of(Era::Legacy).is_some();
        let Some(place) = place(&self.options, keeps_sessions, head.path()) else {
            return refused(&Refusal::NO_SUCH_PATH, None, spoken_by(heads));
        };
        let mut response = self.at(place, head, heads, body).await;
        if matches!(place, Place::SsePair(_)) && self.options.cookie_sessions.is_some() {
            cors::grant_cookies(head.parts(), &self.options.origins, &mut response);
        }
        response
    }

    async fn at<B>(
        self: &Arc<Self>,
        place: Place<'_>,
        head: &RequestHead,
        heads: &Heads<'_>,
        body: B,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        if *head.method() == Method::OPTIONS {
            return cors::preflight(head.parts(), &self.core.env);
        }
        let principal = match self.principal(|| head.parts()) {
            Ok(principal) => principal,
            Err(challenge) => return unauthorized(&challenge, spoken_by(heads)),
        };
        let mut response = match place {
            Place::Endpoint => {
                let answered = match *head.method() {
                    Method::GET => self.get(heads, &principal).await,
                    Method::DELETE => self.delete(heads, &principal).await,
                    _ => Err((Refusal::NOT_ALLOWED, None)),
                };
                return answered.unwrap_or_else(|(refusal, id)| {
                    refused(&refusal, id.as_ref(), self.spoken(heads, &principal))
                });
            }
            Place::SsePair(paths) => self.sse_pair(paths, head, heads, body, principal).await,
            Place::WebSocket => match self.upgrade(head, principal) {
                Ok(response) => response,
                Err(refusal) => refused(&refusal, None, spoken_by(heads)),
            },
        };
        if let Some(allow) = response.headers_mut().get_mut(header::ALLOW) {
            *allow = match place {
                Place::SsePair(paths) if paths.messages == head.path() => {
                    HeaderValue::from_static("POST, OPTIONS")
                }
                _ => HeaderValue::from_static("GET, OPTIONS"),
            };
        }
        response
    }
}

/// Returns what is at a path; HTTP+SSE is of one era alone.
fn place<'a>(options: &'a HttpOptions, keeps_sessions: bool, path: &str) -> Option<Place<'a>> {
    if path == options.path {
        return Some(Place::Endpoint);
    }
    let is_pair = |paths: &&SsePaths| keeps_sessions && (paths.stream == path || paths.messages == path);
    let pair = options.legacy_sse.as_ref().filter(is_pair);
    let socket = options.websocket.as_deref().filter(|socket| *socket == path);
    pair.map(Place::SsePair).or_else(|| socket.map(|_| Place::WebSocket))
}
