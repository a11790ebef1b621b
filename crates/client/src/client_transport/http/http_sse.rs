use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{Method as HttpMethod, StatusCode};
use trunkline_protocol::shorten;
use trunkline_protocol::sse::{SseDecoder, SseEvent};
use trunkline_transport::http::{
    HeaderLines, HttpError, HttpRequest, HttpResponse, HttpResponseBody, RequestTarget,
};
use trunkline_transport::{Channel, ReceiveError, Url};

use super::authorized_http::{AuthorizedHttp, RequestPurpose};
use super::custom_headers::CustomHeaders;
use super::response_head::{self, InSession, ResponseKind, with_excerpt};
use crate::client_transport::{RequestDelivery, TransportFailure, TransportFailureKind};
use crate::user_timeout::timeout_unless_waiting;

/// Timeout for the `endpoint` event, which names the URL for messages.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for one `POST`.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// The most redirects within the origin.
const MAX_REDIRECTS: usize = 3;

/// Bytes read of an error body, for the error message.
const EXCERPT_BYTES: usize = 2048;

/// A channel over HTTP+SSE, as in revision 2024-11-05: an event stream carries the server's messages, and each
/// message of ours is a `POST` to the URL of its `endpoint` event.
///
/// Messages are posted one after another, since their order matters. A message that the server rejects fails alone,
/// as long as the stream is open.
pub(crate) struct HttpSseChannel {
    http: AuthorizedHttp,
    post_target: RequestTarget,
    post_url: Arc<Url>,
    post_headers: HeaderLines,
    stream: SseEventStream,
    limit: usize,
    outgoing: VecDeque<String>,
    /// The bytes of queued messages and of the one in flight.
    queued: usize,
    posting: Option<PostFuture>,
    /// The rejected message, until `poll_receive` reports it.
    rejected: Option<(Bytes, TransportFailure)>,
}

/// A `POST` in flight; resolves to the message and the outcome.
type PostFuture = BoxFuture<'static, (Vec<u8>, Result<(), PostError>)>;

/// Why a message was not delivered.
enum PostError {
    /// The server has lost the session (404).
    SessionGone,
    /// Only this message failed.
    Failed(TransportFailure),
}

impl HttpSseChannel {
    /// Opens the stream and waits for the `endpoint` event.
    pub(crate) async fn open(
        http: AuthorizedHttp,
        url: &Url,
        headers: &CustomHeaders,
        limit: usize,
    ) -> Result<Self, TransportFailure> {
        let waiting = http.clone();
        let opening = Self::open_stream(http, url, headers, limit);
        let late = || {
            Err(TransportFailure::maybe_sent("the server did not say in time where messages are posted to"))
        };
        timeout_unless_waiting(ENDPOINT_TIMEOUT, || waiting.is_waiting_for_user(), opening)
            .await
            .unwrap_or_else(|_| late())
    }

    async fn open_stream(
        http: AuthorizedHttp,
        url: &Url,
        headers: &CustomHeaders,
        limit: usize,
    ) -> Result<Self, TransportFailure> {
        let (url, response) = open_event_stream(&http, url, headers).await?;
        let mut stream = SseEventStream::new(response.body, limit);
        let endpoint = loop {
            match std::future::poll_fn(|cx| stream.poll_event(cx)).await {
                Some(Ok(SseEvent { event: Some(name), data: Some(data), .. })) if name == "endpoint" => {
                    break data;
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(response_head::malformed(error.to_string())),
                None => {
                    let how = "the stream ended before it said where messages are posted to";
                    return Err(TransportFailure::maybe_sent(how));
                }
            }
        };
        let endpoint = String::from_utf8_lossy(&endpoint);
        let refused = |why: &dyn fmt::Display| {
            response_head::malformed(format!("the server names `{}` for messages: {why}", shorten(&endpoint)))
        };
        let post_url = url.join(&endpoint).map_err(|error| refused(&error))?;
        // Only the same origin: otherwise a server could direct our credentials to another host.
        let target = http.target(&post_url).map_err(|error| refused(&error))?;
        Ok(Self {
            http,
            post_target: target,
            post_url: Arc::new(post_url),
            post_headers: headers.post_headers().into(),
            stream,
            limit,
            outgoing: VecDeque::new(),
            queued: 0,
            posting: None,
            rejected: None,
        })
    }

    /// Starts the `POST` of the oldest queued message.
    fn post_next(&mut self) -> bool {
        let Some(message) = self.outgoing.pop_front() else { return false };
        let request = HttpRequest {
            method: HttpMethod::POST,
            target: self.post_target.clone(),
            headers: self.post_headers.clone(),
            body: message.into(),
        };
        self.posting = Some(post(self.http.clone(), request, self.post_url.clone()).boxed());
        true
    }
}

/// Requests the stream. Redirects within the origin are followed, since a `GET` is safe to repeat.
async fn open_event_stream(
    http: &AuthorizedHttp,
    url: &Url,
    headers: &CustomHeaders,
) -> Result<(Url, HttpResponse), TransportFailure> {
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let target = http.target(&url).map_err(|error| response_head::malformed(error.to_string()))?;
        let request = HttpRequest {
            method: HttpMethod::GET,
            target,
            headers: headers.stream_headers().into(),
            body: Vec::new(),
        };
        let mut response = http.send(&request, RequestPurpose::new(&url, "stream")).await?;
        match response_head::classify_response(response.status, &response.headers, InSession::No) {
            ResponseKind::Events => return Ok((url, response)),
            ResponseKind::Json => {
                let problem = "the server answered a request for a stream with JSON".to_owned();
                return Err(response_head::malformed(problem));
            }
            ResponseKind::ErrorStatus(failure, session) => {
                let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                return Err(with_excerpt(failure, &beginning, session));
            }
            ResponseKind::Failed(failure) => match redirect_target(&url, &response) {
                Some(next) if http.target(&next).is_ok() => url = next,
                _ => return Err(failure),
            },
        }
    }
    let kind = TransportFailureKind::Malformed("the server redirects in circles".to_owned());
    Err(TransportFailure { delivery: RequestDelivery::NotSent, kind })
}

fn redirect_target(url: &Url, response: &HttpResponse) -> Option<Url> {
    let location = response.headers.get_text(&http::header::LOCATION)?;
    if response.status.is_redirection() { url.join(location).ok() } else { None }
}

/// Posts a message, and returns it with the outcome.
async fn post(http: AuthorizedHttp, request: HttpRequest, url: Arc<Url>) -> (Vec<u8>, Result<(), PostError>) {
    let purpose = RequestPurpose::new(&url, "post");
    let sending = async {
        let mut response = http.send(&request, purpose).await.map_err(PostError::Failed)?;
        if response.status == StatusCode::NOT_FOUND {
            return Err(PostError::SessionGone);
        }
        match response_head::classify_status(response.status, &response.headers, InSession::No) {
            None => {
                response.body.finish();
                Ok(())
            }
            Some(failure) => {
                let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                Err(PostError::Failed(with_excerpt(failure, &beginning, InSession::No)))
            }
        }
    };
    let late = || {
        Err(PostError::Failed(TransportFailure::maybe_sent("the server did not take the message in time")))
    };
    let waits = || http.is_waiting_for_user();
    let outcome = timeout_unless_waiting(POST_TIMEOUT, waits, sending).await.unwrap_or_else(|_| late());
    (request.body, outcome)
}

impl Channel for HttpSseChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        if let Some((message, failure)) = self.rejected.take() {
            let why = io::Error::other(failure);
            return Poll::Ready(Some(Err(ReceiveError::Rejected { message, why })));
        }
        loop {
            let event = match ready!(self.stream.poll_event(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(event)) => event,
                Some(Err(SseStreamError::TooLong)) => {
                    let message = self.stream.decoder.take_oversized();
                    return Poll::Ready(Some(Err(ReceiveError::TooLong { limit: self.limit, message })));
                }
                Some(Err(SseStreamError::Broken(error))) => {
                    return Poll::Ready(Some(Err(ReceiveError::Broken(io::Error::other(error)))));
                }
            };
            let is_message = event.event.is_none_or(|name| name == "message");
            if let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) {
                return Poll::Ready(Some(Ok(data)));
            }
        }
    }

    fn unread_bytes(&self) -> usize {
        self.stream.decoder.buffered()
    }

    fn send(&mut self, message: &str) {
        self.queued += message.len();
        self.outgoing.push_back(message.to_owned());
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // `poll_receive` reports the last rejected message first, so that at most one is stored.
            if self.rejected.is_some() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(posting) = &mut self.posting {
                let (message, outcome) = ready!(posting.as_mut().poll(cx));
                self.posting = None;
                self.queued -= message.len();
                match outcome {
                    Ok(()) => {}
                    Err(PostError::Failed(failure)) => {
                        self.rejected = Some((message.into(), failure));
                        continue;
                    }
                    Err(PostError::SessionGone) => {
                        return Poll::Ready(Err(io::Error::other(
                            "the server does not know the session (status 404)",
                        )));
                    }
                }
            }
            if !self.post_next() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

impl fmt::Debug for HttpSseChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSseChannel")
            .field("http", &self.http)
            .field("queued", &self.queued)
            .finish_non_exhaustive()
    }
}

/// The decoded events of one stream.
struct SseEventStream {
    body: HttpResponseBody,
    decoder: SseDecoder,
    chunk: Bytes,
}

/// Why the stream has no next event.
#[derive(Debug, thiserror::Error)]
enum SseStreamError {
    #[error("the server sent an event above the limit")]
    TooLong,
    #[error(transparent)]
    Broken(HttpError),
}

impl SseEventStream {
    fn new(body: HttpResponseBody, limit: usize) -> Self {
        Self { body, decoder: SseDecoder::new(limit), chunk: Bytes::new() }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SseEvent, SseStreamError>>> {
        loop {
            match self.decoder.next_event(&mut self.chunk) {
                Some(Ok(event)) => return Poll::Ready(Some(Ok(event))),
                Some(Err(_)) => return Poll::Ready(Some(Err(SseStreamError::TooLong))),
                None => match ready!(self.body.poll_chunk(cx)) {
                    Some(Ok(chunk)) => self.chunk = chunk,
                    Some(Err(error)) => return Poll::Ready(Some(Err(SseStreamError::Broken(error)))),
                    None => return Poll::Ready(None),
                },
            }
        }
    }
}
