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
    HeaderLines, HttpClient, HttpError, HttpOptions, HttpRequest, HttpResponse, Place, ResponseBody,
};
use trunkline_transport::{Channel, ReceiveError, Url};

use super::answer::{self, Answer, InSession, explain};
use super::head::Headers;
use super::shared::lost;
use crate::carrier::{Loss, LossKind, Reach};

/// How long the server has to say where messages are posted to.
const ENDPOINT_WITHIN: Duration = Duration::from_secs(10);

/// How long the server has to take one message.
const POSTED_WITHIN: Duration = Duration::from_secs(30);

/// The longest way within the origin to where the stream is.
const MOST_REDIRECTS: usize = 3;

/// How much of the body of a refusal is read, for people.
const EXCERPT_BYTES: usize = 2048;

/// A channel of HTTP+SSE, as in revision 2024-11-05: a stream of events brings messages, and each message of ours is a
/// `POST` to the place that its first event named.
///
/// Messages are posted one after another, since their order counts. One that is not taken is lost alone, as long as the
/// stream is there.
pub(crate) struct SsePair {
    http: HttpClient,
    place: Place,
    post_headers: HeaderLines,
    stream: EventStream,
    limit: usize,
    outgoing: VecDeque<String>,
    /// The bytes of what waits and of what is being posted.
    queued: usize,
    posting: Option<Posting>,
    /// What was not taken, until whoever reads is told.
    untaken: Option<(Bytes, Loss)>,
}

/// A message that is being posted; it comes back with whether it was taken.
type Posting = BoxFuture<'static, (Vec<u8>, Result<(), NotTaken>)>;

/// Why a message was not taken.
enum NotTaken {
    /// There is no session any more that could take one.
    SessionGone,
    /// It is about this message alone.
    Lost(Loss),
}

impl SsePair {
    /// Opens the stream and waits for its first event.
    pub(crate) async fn open(
        dialer: Dialer,
        url: &Url,
        headers: &Headers,
        limit: usize,
    ) -> Result<Self, Loss> {
        let opening = Self::open_stream(dialer, url, headers, limit);
        let late =
            || Err(Loss::may_have_reached("the server did not say in time where messages are posted to"));
        timeout(ENDPOINT_WITHIN, opening).await.unwrap_or_else(|_| late())
    }

    async fn open_stream(dialer: Dialer, url: &Url, headers: &Headers, limit: usize) -> Result<Self, Loss> {
        let http = HttpClient::new(dialer, url.clone(), &HttpOptions::default());
        let (url, response) = get(&http, url, headers).await?;
        let mut stream = EventStream::new(response.body, limit);
        let endpoint = loop {
            match std::future::poll_fn(|cx| stream.poll_event(cx)).await {
                Some(Ok(SseEvent { event: Some(name), data: Some(data), .. })) if name == "endpoint" => {
                    break data;
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(answer::malformed(error.to_string())),
                None => {
                    let how = "the stream ended before it said where messages are posted to";
                    return Err(Loss::may_have_reached(how));
                }
            }
        };
        let endpoint = String::from_utf8_lossy(&endpoint);
        let refused = |why: &dyn fmt::Display| {
            answer::malformed(format!("the server names `{}` for messages: {why}", shorten(&endpoint)))
        };
        let place = url.join(&endpoint).map_err(|error| refused(&error))?;
        // Else a server could have our credentials sent to anybody.
        let place = http.place(&place).map_err(|error| refused(&error))?;
        Ok(Self {
            http,
            place,
            post_headers: headers.post().into(),
            stream,
            limit,
            outgoing: VecDeque::new(),
            queued: 0,
            posting: None,
            untaken: None,
        })
    }

    /// Begins to post the message that waits longest.
    fn begin_next(&mut self) -> bool {
        let Some(message) = self.outgoing.pop_front() else { return false };
        let request = HttpRequest {
            method: HttpMethod::POST,
            place: self.place.clone(),
            headers: self.post_headers.clone(),
            body: message.into(),
        };
        self.posting = Some(post(self.http.clone(), request).boxed());
        true
    }
}

/// Asks for the stream; a way within the same origin is followed, since nothing but the request itself is repeated.
async fn get(http: &HttpClient, url: &Url, headers: &Headers) -> Result<(Url, HttpResponse), Loss> {
    let mut url = url.clone();
    for _ in 0..=MOST_REDIRECTS {
        let place = http.place(&url).map_err(|error| answer::malformed(error.to_string()))?;
        let request = HttpRequest {
            method: HttpMethod::GET,
            place,
            headers: headers.stream().into(),
            body: Vec::new(),
        };
        let mut response = http.send(&request).await.map_err(|error| lost(&error))?;
        match answer::judge(response.status, &response.headers, InSession::No) {
            Answer::Events => return Ok((url, response)),
            Answer::Json => {
                let problem = "the server answered a request for a stream with JSON".to_owned();
                return Err(answer::malformed(problem));
            }
            Answer::Refused(loss, session) => {
                let beginning = response.body.read_beginning(EXCERPT_BYTES).await;
                return Err(explain(loss, &beginning, session));
            }
            Answer::Lost(loss) => match redirection(&url, &response) {
                Some(next) if http.place(&next).is_ok() => url = next,
                _ => return Err(loss),
            },
        }
    }
    let kind = LossKind::Malformed("the server redirects in circles".to_owned());
    Err(Loss { reach: Reach::NotReached, kind })
}

fn redirection(url: &Url, response: &HttpResponse) -> Option<Url> {
    let location = response.headers.get_text(&http::header::LOCATION)?;
    if response.status.is_redirection() { url.join(location).ok() } else { None }
}

/// Posts a message, and gives it back with whether it was taken.
async fn post(http: HttpClient, request: HttpRequest) -> (Vec<u8>, Result<(), NotTaken>) {
    let sending = async {
        let mut response = http.send(&request).await.map_err(|error| NotTaken::Lost(lost(&error)))?;
        if response.status == StatusCode::NOT_FOUND {
            return Err(NotTaken::SessionGone);
        }
        match answer::judge_status(response.status, &response.headers, InSession::No) {
            None => {
                response.body.finish();
                Ok(())
            }
            Some(loss) => {
                let beginning = response.body.read_beginning(EXCERPT_BYTES).await;
                Err(NotTaken::Lost(explain(loss, &beginning, InSession::No)))
            }
        }
    };
    let late = || Err(NotTaken::Lost(Loss::may_have_reached("the server did not take the message in time")));
    let outcome = timeout(POSTED_WITHIN, sending).await.unwrap_or_else(|_| late());
    (request.body, outcome)
}

impl Channel for SsePair {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        if let Some((message, loss)) = self.untaken.take() {
            let why = io::Error::other(loss);
            return Poll::Ready(Some(Err(ReceiveError::Untaken { message, why })));
        }
        loop {
            let event = match ready!(self.stream.poll_event(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(event)) => event,
                Some(Err(StreamError::TooLong)) => {
                    return Poll::Ready(Some(Err(ReceiveError::TooLong { limit: self.limit })));
                }
                Some(Err(StreamError::Broken(error))) => {
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
            if self.untaken.is_some() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(posting) = &mut self.posting {
                let (message, outcome) = ready!(posting.as_mut().poll(cx));
                self.posting = None;
                self.queued -= message.len();
                match outcome {
                    Ok(()) => {}
                    Err(NotTaken::Lost(loss)) => {
                        self.untaken = Some((message.into(), loss));
                        continue;
                    }
                    Err(NotTaken::SessionGone) => {
                        return Poll::Ready(Err(io::Error::other(
                            "the server does not know the session (status 404)",
                        )));
                    }
                }
            }
            if !self.begin_next() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

impl fmt::Debug for SsePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SsePair")
            .field("http", &self.http)
            .field("queued", &self.queued)
            .finish_non_exhaustive()
    }
}

/// The events of one stream.
struct EventStream {
    body: ResponseBody,
    decoder: SseDecoder,
    chunk: Bytes,
}

/// Why there is no event.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("the server sent an event above the limit")]
    TooLong,
    #[error(transparent)]
    Broken(HttpError),
}

impl EventStream {
    fn new(body: ResponseBody, limit: usize) -> Self {
        Self { body, decoder: SseDecoder::new(limit), chunk: Bytes::new() }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SseEvent, StreamError>>> {
        loop {
            match self.decoder.next_event(&mut self.chunk) {
                Some(Ok(event)) => return Poll::Ready(Some(Ok(event))),
                Some(Err(_)) => return Poll::Ready(Some(Err(StreamError::TooLong))),
                None => match ready!(self.body.poll_chunk(cx)) {
                    Some(Ok(chunk)) => self.chunk = chunk,
                    Some(Err(error)) => return Poll::Ready(Some(Err(StreamError::Broken(error)))),
                    None => return Poll::Ready(None),
                },
            }
        }
    }
}
