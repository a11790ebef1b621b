use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{Method as HttpMethod, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};
use trunkline_protocol::{Refusal, RequestId, Revision, emit};
use trunkline_transport::Url;
use trunkline_transport::dial::Dialer;
use trunkline_transport::http::{
    HeaderLines, HttpError, HttpResponse, OriginMismatch, RequestDelivery as HttpReach,
};

use super::HttpLimits;
use super::close_signal::CloseSignal;
use super::custom_headers::{self, CustomHeaders};
use super::endpoint::HttpEndpoint;
use super::http_session::HttpSession;
use super::response_head::{self, InSession, ResponseKind, with_excerpt};
use super::sse_messages::SseMessages;
use crate::client_transport::{
    DeliveryStatus, HeaderMirror, OutgoingMessage, OutgoingRequest, TransportFailure, TransportFailureKind,
    UnsolicitedSender,
};

/// How long the server has to take a notification or an answer.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a server may take to say whether it has a standing stream, before a request that needs one is sent anyway.
const STANDALONE_STREAM_TIMEOUT: Duration = Duration::from_secs(2);

/// How long what is still being posted at the end is waited for.
const FINAL_POST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the server has to end a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// Cancellations and the like that are being posted at one time; beyond it they are dropped.
const MAX_BACKGROUND_POSTS: usize = 64;

/// How much of the body of a refusal is read, for people.
const EXCERPT_BYTES: usize = 2048;

/// What a request most likely adds to the headers that all have.
const EXTRA_HEADER_BYTES: usize = 256;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What the requests to one endpoint have in common.
pub(super) struct HttpShared {
    pub(super) limits: HttpLimits,
    pub(super) unsolicited: UnsolicitedSender,
    pub(super) request_permits: Arc<Semaphore>,
    endpoint: HttpEndpoint,
    post_headers: HeaderLines,
    stream_headers: HeaderLines,
    state: Mutex<HttpState>,
    /// Whether the client has closed the connection, by which every request ends.
    pub(super) close_signal: CloseSignal,
}

#[derive(Default)]
struct HttpState {
    session: HttpSession,
    /// How many sessions there were.
    session_number: u64,
    standalone: StandaloneStream,
    background_posts: JoinSet<()>,
}

/// The stream for what belongs to no request.
#[derive(Debug, Default)]
enum StandaloneStream {
    /// There is no session that it could belong to.
    #[default]
    Off,
    /// It is opened once the handshake is over.
    Pending,
    /// It is driven by a task.
    Running(StandaloneStreamTask),
}

/// The task that drives the standing stream.
#[derive(Debug)]
struct StandaloneStreamTask {
    task: AbortHandle,
    /// Whether the server has said for the first time if there is such a stream.
    is_opened: watch::Receiver<bool>,
    /// Until when that is waited for.
    deadline: Instant,
}

/// Why there is no stream.
#[derive(Debug)]
pub(super) enum StreamUnavailable {
    /// There may be one later; with a sentence that says what happened.
    Retry(String),
    /// There will be none.
    Never(TransportFailure),
}

impl HttpShared {
    pub(super) fn new(
        dialer: Dialer,
        url: &Url,
        headers: &CustomHeaders,
        limits: HttpLimits,
        aside: UnsolicitedSender,
    ) -> Result<Self, OriginMismatch> {
        Ok(Self {
            limits,
            unsolicited: aside,
            request_permits: Arc::new(Semaphore::new(limits.in_flight)),
            endpoint: HttpEndpoint::new(dialer, url)?,
            post_headers: headers.post_headers().into(),
            stream_headers: headers.stream_headers().into(),
            state: Mutex::default(),
            close_signal: CloseSignal::default(),
        })
    }

    /// Reports whether the connection was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.close_signal.is_closed()
    }

    /// Sends a request of the protocol and judges the head of its response.
    pub(super) async fn send(
        &self,
        outgoing: &mut OutgoingRequest,
    ) -> Result<(ResponseKind, HttpResponse), TransportFailure> {
        let mut headers = self.post_headers.with_capacity_for(EXTRA_HEADER_BYTES);
        custom_headers::add_mirrored_headers(&mut headers, &outgoing.mirror, Some(&outgoing.method));
        let session = self.add_session_headers(&outgoing.mirror, &mut headers);
        let body = std::mem::take(&mut outgoing.body).into();
        let request = self.endpoint.build_request(HttpMethod::POST, headers, body);
        let response = self.endpoint.send(&request).await.map_err(|error| http_failure(&error))?;
        let answer = response_head::classify_response(response.status, &response.headers, session);
        if outgoing.mirror == HeaderMirror::Nothing
            && matches!(answer, ResponseKind::Json | ResponseKind::Events)
        {
            let session = HttpSession::from_headers(&response.headers).map_err(response_head::malformed)?;
            // Only now, and not when the handshake was sent: until then whoever calls hears that the session is gone and waits
            // for the new one, and if no new one comes about, the next who calls tries again.
            let mut state = self.lock();
            state.session = session;
            state.session_number += 1;
            if let StandaloneStream::Running(listener) =
                std::mem::replace(&mut state.standalone, StandaloneStream::Pending)
            {
                listener.task.abort();
            }
        }
        Ok((answer, response))
    }

    /// Adds the session that a message belongs to, if it belongs to one.
    fn add_session_headers(&self, mirror: &HeaderMirror, headers: &mut HeaderLines) -> InSession {
        let HeaderMirror::Version(revision) = mirror else { return InSession::No };
        let mut state = self.lock();
        state.session.set_revision(*revision);
        state.session.add_session_id(headers)
    }

    /// Forgets the session, and returns it.
    fn take_session(&self) -> HttpSession {
        let mut state = self.lock();
        if let StandaloneStream::Running(listener) = std::mem::take(&mut state.standalone) {
            listener.task.abort();
        }
        std::mem::take(&mut state.session)
    }

    /// Sends a notification or an answer.
    pub(super) async fn post(&self, posted: OutgoingMessage) -> Result<(), TransportFailure> {
        let mut headers = self.post_headers.with_capacity_for(EXTRA_HEADER_BYTES);
        custom_headers::add_mirrored_headers(&mut headers, &posted.mirror, None);
        let session = self.add_session_headers(&posted.mirror, &mut headers);
        self.deliver(posted.body, headers, session).await
    }

    async fn deliver(
        &self,
        body: String,
        headers: HeaderLines,
        session: InSession,
    ) -> Result<(), TransportFailure> {
        let request = self.endpoint.build_request(HttpMethod::POST, headers, body.into());
        let sending = async {
            let mut response = self.endpoint.send(&request).await.map_err(|error| http_failure(&error))?;
            match response_head::classify_status(response.status, &response.headers, session) {
                None => {
                    response.body.finish();
                    Ok(())
                }
                Some(loss) => {
                    let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                    Err(with_excerpt(loss, &beginning, session))
                }
            }
        };
        let late = || Err(TransportFailure::maybe_delivered("the server did not take a message in time"));
        timeout(POST_TIMEOUT, sending).await.unwrap_or_else(|_| late())
    }

    /// Sends something to the session that nobody waits for.
    pub(super) fn post_in_background(self: &Arc<Self>, body: String) {
        if self.is_closed() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = self.clone();
        let posting = async move {
            let mut headers = shared.post_headers.clone();
            let session = shared.lock().session.add_session_headers(&mut headers);
            if let Err(loss) = shared.deliver(body, headers, session).await {
                tracing::debug!(?loss, "a message was not taken");
            }
        };
        let mut state = self.lock();
        while state.background_posts.try_join_next().is_some() {}
        if state.background_posts.len() < MAX_BACKGROUND_POSTS {
            state.background_posts.spawn_on(posting, &runtime);
        } else {
            tracing::debug!("dropped a message, since too many wait to be posted");
        }
    }

    /// Answers a ping.
    pub(super) fn answer_ping(self: &Arc<Self>, id: &RequestId) {
        self.post_in_background(emit::result(id, 2, |writer| writer.verbatim("{}")));
    }

    /// Refuses a question, since too many wait already.
    pub(super) fn reject_request(self: &Arc<Self>, id: &RequestId) {
        self.post_in_background(emit::error(Some(id), &Refusal::TOO_MANY, Revision::NEWEST_LEGACY));
    }

    /// Returns which of the sessions that there were is the present one.
    pub(super) fn session_number(&self) -> u64 {
        self.lock().session_number
    }

    /// Opens a stream of a session, or takes one up again behind the event that was last. One of a session that is over is
    /// never looked for in the next, where the same event may be another's.
    pub(super) async fn open_stream(
        &self,
        of: u64,
        last: Option<&HeaderValue>,
    ) -> Result<SseMessages, StreamUnavailable> {
        let mut headers = self.stream_headers.clone();
        let session = {
            let state = self.lock();
            if state.session_number != of {
                return Err(StreamUnavailable::Never(TransportFailure::maybe_delivered(
                    "the server has forgotten the session",
                )));
            }
            state.session.add_session_headers(&mut headers)
        };
        if let Some(last) = last {
            headers.add(&LAST_EVENT_ID, last);
        }
        let request = self.endpoint.build_request(HttpMethod::GET, headers, Vec::new());
        let sent = self.endpoint.send(&request).await;
        let mut response = sent.map_err(|error| StreamUnavailable::Retry(error.to_string()))?;
        match response_head::classify_response(response.status, &response.headers, session) {
            ResponseKind::Events => Ok(SseMessages::new(response.body, &self.limits)),
            ResponseKind::Json => {
                let problem = "the server answered a request for a stream with JSON".to_owned();
                Err(StreamUnavailable::Never(response_head::malformed(problem)))
            }
            ResponseKind::ErrorStatus(..)
                if response.status.is_server_error() || is_busy(response.status) =>
            {
                Err(StreamUnavailable::Retry(format!("the server answered with status {}", response.status)))
            }
            ResponseKind::ErrorStatus(loss, session) => {
                let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                Err(StreamUnavailable::Never(with_excerpt(loss, &beginning, session)))
            }
            ResponseKind::Failed(loss) => Err(StreamUnavailable::Never(loss)),
        }
    }

    /// Starts the task that drives the standing stream, if it is due.
    pub(super) fn start_standalone(&self, start: impl FnOnce(watch::Sender<bool>) -> AbortHandle) {
        let mut state = self.lock();
        if matches!(state.standalone, StandaloneStream::Pending) {
            let (settle, is_settled) = watch::channel(false);
            let until = Instant::now() + STANDALONE_STREAM_TIMEOUT;
            state.standalone = StandaloneStream::Running(StandaloneStreamTask {
                task: start(settle),
                is_opened: is_settled,
                deadline: until,
            });
        }
    }

    /// Waits until the standing stream is there, or it is clear that it is not, or that takes too long. There are servers
    /// that drop what they have to say if nobody listens.
    pub(super) fn standalone_opened(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (mut is_settled, until) = match &self.lock().standalone {
            StandaloneStream::Running(listener) if !*listener.is_opened.borrow() => {
                (listener.is_opened.clone(), listener.deadline)
            }
            _ => return None,
        };
        Some(async move {
            let _ = timeout_at(until, is_settled.wait_for(|is_settled| *is_settled)).await;
        })
    }

    /// Ends the session and everything that belongs to it, in an orderly way.
    pub(super) async fn close(&self) {
        self.close_signal.close();
        let beside = std::mem::take(&mut self.lock().background_posts);
        let _ = timeout(FINAL_POST_TIMEOUT, beside.join_all()).await;
        if let Some(headers) = self.take_session_headers() {
            self.delete_session(headers).await;
        }
        self.unsolicited.send_closed();
    }

    /// Lets everything go at once; what is being posted still is, and the server hears of the end if there is somebody
    /// who can tell it.
    pub(super) fn abandon(self: &Arc<Self>) {
        self.lock().background_posts.detach_all();
        let Some(headers) = self.take_session_headers() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = self.clone();
        runtime.spawn(async move { shared.delete_session(headers).await });
    }

    /// Leaves the session, and returns the headers that say which it was; nothing if the server keeps none.
    fn take_session_headers(&self) -> Option<HeaderLines> {
        let session = self.take_session();
        let mut headers = self.stream_headers.clone();
        (session.add_session_headers(&mut headers) == InSession::Yes).then_some(headers)
    }

    /// Tells the server that a session is over. It need not offer this, and one that is gone already is what was wanted.
    async fn delete_session(&self, headers: HeaderLines) {
        let request = self.endpoint.build_request(HttpMethod::DELETE, headers, Vec::new());
        if let Ok(Err(error)) = timeout(DELETE_TIMEOUT, self.endpoint.send(&request)).await {
            tracing::debug!(%error, "the session was not ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HttpState> {
        self.state.lock()
    }
}

/// Tells whether a status only says that it is too much at the moment.
fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS)
}

/// Says what an error of HTTP means for a request.
pub(super) fn http_failure(error: &HttpError) -> TransportFailure {
    let reach = match error.delivery() {
        HttpReach::NotSent => DeliveryStatus::NotDelivered,
        HttpReach::MaybeSent => DeliveryStatus::MaybeDelivered,
    };
    let kind = match error {
        HttpError::TooLong { limit } => TransportFailureKind::TooLong { limit: *limit },
        HttpError::Malformed(_) => TransportFailureKind::Malformed(error.to_string()),
        _ => TransportFailureKind::Closed(error.to_string()),
    };
    TransportFailure { delivery: reach, kind }
}

impl fmt::Debug for HttpShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Shared")
            .field("endpoint", &self.endpoint)
            .field("session", &state.session)
            .field("standing", &state.standalone)
            .finish_non_exhaustive()
    }
}
