use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{Method as HttpMethod, StatusCode};
use tokio::time::timeout;
use trunkline_protocol::shorten;
use trunkline_protocol::sse::{SseDecoder, SseEvent};
use trunkline_transport::dial::Dialer;
use trunkline_transport::http::{
    HeaderLines, HttpClient, HttpClientOptions, HttpError, HttpRequest, HttpResponse, HttpResponseBody,
    RequestTarget,
};
use trunkline_transport::{Channel, ReceiveError, Url};

use super::custom_headers::CustomHeaders;
use super::response_head::{self, InSession, ResponseKind, with_excerpt};
use super::shared::http_failure;
use crate::client_transport::{DeliveryStatus, TransportFailure, TransportFailureKind};

/// How long the server has to say where messages are posted to.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the server has to take one message.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest way within the origin to where the stream is.
const MAX_REDIRECTS: usize = 3;

/// How much of the body of a refusal is read, for people.
const EXCERPT_BYTES: usize = 2048;

/// A channel of HTTP+SSE, as in revision 2024-11-05: a stream of events brings messages, and each message of ours is a
/// `POST` to the place that its first event named.
///
/// Messages are posted one after another, since their order counts. One that is not taken is lost alone, as long as the
/// stream is there.
pub(crate) struct HttpSseChannel {
    http: HttpClient,
    post_target: RequestTarget,
    post_headers: HeaderLines,
    stream: SseEventStream,
    limit: usize,
    outgoing: VecDeque<String>,
    /// The bytes of what waits and of what is being posted.
    queued: usize,
    posting: Option<PostFuture>,
    /// What was not taken, until whoever reads is told.
    rejected: Option<(Bytes, TransportFailure)>,
}

/// A message that is being posted; it comes back with whether it was taken.
type PostFuture = BoxFuture<'static, (Vec<u8>, Result<(), PostError>)>;

/// Why a message was not taken.
enum PostError {
    /// There is no session any more that could take one.
    SessionGone,
    /// It is about this message alone.
    Failed(TransportFailure),
}

impl HttpSseChannel {
    /// Opens the stream and waits for its first event.
    pub(crate) async fn open(
        dialer: Dialer,
        url: &Url,
        headers: &CustomHeaders,
        limit: usize,
    ) -> Result<Self, TransportFailure> {
        let opening = Self::open_stream(dialer, url, headers, limit);
        let late = || {
            Err(TransportFailure::maybe_delivered(
                "the server did not say in time where messages are posted to",
            ))
        };
        timeout(ENDPOINT_TIMEOUT, opening).await.unwrap_or_else(|_| late())
    }

    async fn open_stream(
        dialer: Dialer,
        url: &Url,
        headers: &CustomHeaders,
        limit: usize,
    ) -> Result<Self, TransportFailure> {
        let http = HttpClient::new(dialer, url.clone(), &HttpClientOptions::default());
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
                    return Err(TransportFailure::maybe_delivered(how));
                }
            }
        };
        let endpoint = String::from_utf8_lossy(&endpoint);
        let refused = |why: &dyn fmt::Display| {
            response_head::malformed(format!("the server names `{}` for messages: {why}", shorten(&endpoint)))
        };
        let place = url.join(&endpoint).map_err(|error| refused(&error))?;
        // Else a server could have our credentials sent to anybody.
        let place = http.target(&place).map_err(|error| refused(&error))?;
        Ok(Self {
            http,
            post_target: place,
            post_headers: headers.post_headers().into(),
            stream,
            limit,
            outgoing: VecDeque::new(),
            queued: 0,
            posting: None,
            rejected: None,
        })
    }

    /// Begins to post the message that waits longest.
    fn post_next(&mut self) -> bool {
        let Some(message) = self.outgoing.pop_front() else { return false };
        let request = HttpRequest {
            method: HttpMethod::POST,
            target: self.post_target.clone(),
            headers: self.post_headers.clone(),
            body: message.into(),
        };
        self.posting = Some(post(self.http.clone(), request).boxed());
        true
    }
}

/// Asks for the stream; a way within the same origin is followed, since nothing but the request itself is repeated.
async fn open_event_stream(
    http: &HttpClient,
    url: &Url,
    headers: &CustomHeaders,
) -> Result<(Url, HttpResponse), TransportFailure> {
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let place = http.target(&url).map_err(|error| response_head::malformed(error.to_string()))?;
        let request = HttpRequest {
            method: HttpMethod::GET,
            target: place,
            headers: headers.stream_headers().into(),
            body: Vec::new(),
        };
        let mut response = http.send(&request).await.map_err(|error| http_failure(&error))?;
        match response_head::classify_response(response.status, &response.headers, InSession::No) {
            ResponseKind::Events => return Ok((url, response)),
            ResponseKind::Json => {
                let problem = "the server answered a request for a stream with JSON".to_owned();
                return Err(response_head::malformed(problem));
            }
            ResponseKind::ErrorStatus(loss, session) => {
                let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                return Err(with_excerpt(loss, &beginning, session));
            }
            ResponseKind::Failed(loss) => match redirect_target(&url, &response) {
                Some(next) if http.target(&next).is_ok() => url = next,
                _ => return Err(loss),
            },
        }
    }
    let kind = TransportFailureKind::Malformed("the server redirects in circles".to_owned());
    Err(TransportFailure { delivery: DeliveryStatus::NotDelivered, kind })
}

fn redirect_target(url: &Url, response: &HttpResponse) -> Option<Url> {
    let location = response.headers.get_text(&http::header::LOCATION)?;
    if response.status.is_redirection() { url.join(location).ok() } else { None }
}

/// Posts a message, and gives it back with whether it was taken.
async fn post(http: HttpClient, request: HttpRequest) -> (Vec<u8>, Result<(), PostError>) {
    let sending = async {
        let mut response =
            http.send(&request).await.map_err(|error| PostError::Failed(http_failure(&error)))?;
        if response.status == StatusCode::NOT_FOUND {
            return Err(PostError::SessionGone);
        }
        match response_head::classify_status(response.status, &response.headers, InSession::No) {
            None => {
                response.body.finish();
                Ok(())
            }
            Some(loss) => {
                let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                Err(PostError::Failed(with_excerpt(loss, &beginning, InSession::No)))
            }
        }
    };
    let late = || {
        Err(PostError::Failed(TransportFailure::maybe_delivered(
            "the server did not take the message in time",
        )))
    };
    let outcome = timeout(POST_TIMEOUT, sending).await.unwrap_or_else(|_| late());
    (request.body, outcome)
}

impl Channel for HttpSseChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        if let Some((message, loss)) = self.rejected.take() {
            let why = io::Error::other(loss);
            return Poll::Ready(Some(Err(ReceiveError::Rejected { message, why })));
        }
        loop {
            let event = match ready!(self.stream.poll_event(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(event)) => event,
                Some(Err(SseStreamError::TooLong)) => {
                    return Poll::Ready(Some(Err(ReceiveError::TooLong { limit: self.limit })));
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

    fn send(&mut self, message: &str) {
        self.queued += message.len();
        self.outgoing.push_back(message.to_owned());
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // Whoever reads is told of the last one first, so that never more than one has to be kept.
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
                    Err(PostError::Failed(loss)) => {
                        self.rejected = Some((message.into(), loss));
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

/// The events of one stream.
struct SseEventStream {
    body: HttpResponseBody,
    decoder: SseDecoder,
    chunk: Bytes,
}

/// Why there is no event.
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
