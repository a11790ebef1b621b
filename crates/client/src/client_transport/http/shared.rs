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
use trunkline_transport::http::{HeaderLines, HttpError, HttpResponse, OriginMismatch};
use trunkline_transport::{Secret, Url};

use super::HttpLimits;
use super::authorized_http::AuthorizedHttp;
use super::close_signal::CloseSignal;
use super::custom_headers::CustomHeaders;
use super::endpoint::HttpEndpoint;
use super::http_session::HttpSession;
use super::mcp_headers;
use super::response_head::{self, InSession, ResponseKind, with_excerpt};
use super::sse_messages::SseMessages;
use crate::client_transport::{
    FailureCause, HeaderMirror, OutgoingMessage, OutgoingRequest, TransportFailure, TransportFailureKind,
    UnsolicitedSender,
};
use crate::dropped_message::DroppedMessage;
use crate::resumable_session::ResumableSession;
use crate::user_timeout::timeout_unless_waiting;

/// Timeout for posting a notification or a response.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request that needs the standalone stream waits for it to open, before it is sent anyway.
const STANDALONE_STREAM_TIMEOUT: Duration = Duration::from_secs(2);

/// How long closing waits for messages that are still being posted.
const FINAL_POST_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for the `DELETE` of a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// Concurrent posts in the background, such as cancellations; beyond it they are dropped.
const MAX_BACKGROUND_POSTS: usize = 64;

/// Bytes read of an error body, for the error message.
const EXCERPT_BYTES: usize = 2048;

/// Estimated bytes that a request adds to the common headers.
const EXTRA_HEADER_BYTES: usize = 256;

/// What requests without a method are called, for authorization.
const POST_OPERATION: &str = "post";
const STREAM_OPERATION: &str = "stream";
const DELETE_OPERATION: &str = "delete";

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The state shared by all requests to one endpoint.
pub(crate) struct HttpShared {
    pub(super) limits: HttpLimits,
    pub(super) unsolicited: UnsolicitedSender,
    pub(super) request_permits: Arc<Semaphore>,
    endpoint: HttpEndpoint,
    post_headers: HeaderLines,
    stream_headers: HeaderLines,
    state: Mutex<HttpState>,
    /// Fires when the client closes the connection, which ends every request.
    pub(super) close_signal: CloseSignal,
}

#[derive(Default)]
struct HttpState {
    session: HttpSession,
    /// The number of sessions so far.
    session_number: u64,
    standalone: StandaloneStream,
    background_posts: JoinSet<()>,
    /// Whether the session stays open at the server after this client.
    keeps_session: bool,
}

/// The state of the standalone SSE stream, which carries messages that belong to no request.
#[derive(Debug, Default)]
enum StandaloneStream {
    /// There is no session.
    #[default]
    Off,
    /// It is opened after the handshake.
    Pending,
    /// A task drives it.
    Running(StandaloneStreamTask),
}

/// The task that drives the standalone stream.
#[derive(Debug)]
struct StandaloneStreamTask {
    task: AbortHandle,
    /// Whether the first attempt to open the stream has completed.
    is_opened: watch::Receiver<bool>,
    /// How long requests wait for that.
    deadline: Instant,
}

/// Why a stream could not be opened.
#[derive(Debug)]
pub(super) enum StreamUnavailable {
    /// Temporary; with the reason.
    Retry(String),
    /// Permanent.
    Never(TransportFailure),
}

impl HttpShared {
    /// Creates the state of a transport.
    ///
    /// # Errors
    /// Never for a parsed URL, although the type cannot express that.
    pub(crate) fn new(
        http: AuthorizedHttp,
        url: &Url,
        headers: &CustomHeaders,
        limits: HttpLimits,
        unsolicited: UnsolicitedSender,
    ) -> Result<Self, OriginMismatch> {
        Ok(Self {
            request_permits: Arc::new(Semaphore::new(limits.in_flight)),
            limits,
            unsolicited,
            endpoint: HttpEndpoint::new(http, url)?,
            post_headers: headers.post_headers().into(),
            stream_headers: headers.stream_headers().into(),
            state: Mutex::default(),
            close_signal: CloseSignal::default(),
        })
    }

    /// Continues a session that another client opened.
    pub(super) fn resume(&self, session: &ResumableSession) {
        let mut state = self.lock();
        state.session = HttpSession::resume(session);
        state.session_number += 1;
        state.standalone = StandaloneStream::Pending;
    }

    /// Returns the id of the session, if there is one.
    pub(super) fn session_id(&self) -> Option<Secret> {
        self.lock().session.id()
    }

    /// Leaves the session open at the server when the connection is closed.
    pub(super) fn keep_session(&self) {
        self.lock().keeps_session = true;
    }

    /// Reports whether an authorization waits for the user.
    pub(super) fn is_waiting_for_user(&self) -> bool {
        self.endpoint.is_waiting_for_user()
    }

    /// Reports whether the connection was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.close_signal.is_closed()
    }

    /// Sends a JSON-RPC request and classifies the head of its response.
    pub(super) async fn send(
        &self,
        outgoing: &mut OutgoingRequest,
    ) -> Result<(ResponseKind, HttpResponse), TransportFailure> {
        let mut headers = self.post_headers.with_capacity_for(EXTRA_HEADER_BYTES);
        mcp_headers::add_mirrored_headers(&mut headers, &outgoing.mirror, Some(&outgoing.method));
        let session = self.add_session_headers(&outgoing.mirror, &mut headers);
        let body = std::mem::take(&mut outgoing.body).into();
        let request = self.endpoint.build_request(HttpMethod::POST, headers, body);
        let caller_token = outgoing.caller_token.as_ref();
        let response = self.endpoint.send_for(&request, &outgoing.method, caller_token).await?;
        let answer = response_head::classify_response(response.status, &response.headers, session);
        if outgoing.mirror == HeaderMirror::Nothing
            && matches!(answer, ResponseKind::Json | ResponseKind::Events)
        {
            let session = HttpSession::from_headers(&response.headers).map_err(response_head::malformed)?;
            // Replaced only now, and not when the handshake was sent: until then callers fail with a lost session
            // and wait for the new one, and if the handshake fails, the next caller retries it.
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

    /// Adds the session id to a message of a session.
    fn add_session_headers(&self, mirror: &HeaderMirror, headers: &mut HeaderLines) -> InSession {
        let HeaderMirror::Version(revision) = mirror else { return InSession::No };
        let mut state = self.lock();
        state.session.set_revision(*revision);
        state.session.add_session_id(headers)
    }

    /// Removes the session, and returns it.
    fn take_session(&self) -> HttpSession {
        let mut state = self.lock();
        if let StandaloneStream::Running(listener) = std::mem::take(&mut state.standalone) {
            listener.task.abort();
        }
        std::mem::take(&mut state.session)
    }

    /// Sends a notification or a response.
    pub(super) async fn post(&self, posted: OutgoingMessage) -> Result<(), TransportFailure> {
        let mut headers = self.post_headers.with_capacity_for(EXTRA_HEADER_BYTES);
        mcp_headers::add_mirrored_headers(&mut headers, &posted.mirror, None);
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
            let mut response = self.endpoint.send(&request, POST_OPERATION).await?;
            match response_head::classify_status(response.status, &response.headers, session) {
                None => {
                    response.body.finish();
                    Ok(())
                }
                Some(failure) => {
                    let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                    Err(with_excerpt(failure, &beginning, session))
                }
            }
        };
        let late = || Err(TransportFailure::maybe_sent("the server did not take a message in time"));
        timeout_unless_waiting(POST_TIMEOUT, || self.is_waiting_for_user(), sending)
            .await
            .unwrap_or_else(|_| late())
    }

    /// Posts a message to the session in the background.
    pub(super) fn post_in_background(self: &Arc<Self>, body: String) {
        if self.is_closed() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = self.clone();
        let posting = async move {
            let mut headers = shared.post_headers.clone();
            let session = shared.lock().session.add_session_headers(&mut headers);
            if let Err(failure) = shared.deliver(body, headers, session).await {
                shared.unsolicited.count_dropped(DroppedMessage::Answer);
                tracing::debug!(?failure, "the server rejected a message");
            }
        };
        let mut state = self.lock();
        while state.background_posts.try_join_next().is_some() {}
        if state.background_posts.len() < MAX_BACKGROUND_POSTS {
            state.background_posts.spawn_on(posting, &runtime);
        } else {
            drop(state);
            self.unsolicited.count_dropped(DroppedMessage::Answer);
            tracing::debug!("dropped an answer, since too many wait to be posted");
        }
    }

    /// Answers a ping.
    pub(super) fn answer_ping(self: &Arc<Self>, id: &RequestId) {
        self.post_in_background(emit::result(id, 2, |writer| writer.verbatim("{}")));
    }

    /// Refuses an input request, since too many are queued.
    pub(super) fn reject_request(self: &Arc<Self>, id: &RequestId) {
        self.post_in_background(emit::error(Some(id), &Refusal::TOO_MANY, Revision::NEWEST_LEGACY));
    }

    /// Returns the number of the current session.
    pub(super) fn session_number(&self) -> u64 {
        self.lock().session_number
    }

    /// Opens a stream of a session, or resumes one after the last event. A stream of an earlier session is never
    /// resumed in the current one, where the same event id may mean another event.
    pub(super) async fn open_stream(
        &self,
        session_number: u64,
        last_event_id: Option<&HeaderValue>,
    ) -> Result<SseMessages, StreamUnavailable> {
        let mut headers = self.stream_headers.clone();
        let session = {
            let state = self.lock();
            if state.session_number != session_number {
                return Err(StreamUnavailable::Never(TransportFailure::maybe_sent(
                    "the server has forgotten the session",
                )));
            }
            state.session.add_session_headers(&mut headers)
        };
        if let Some(last_event_id) = last_event_id {
            headers.add(&LAST_EVENT_ID, last_event_id);
        }
        let request = self.endpoint.build_request(HttpMethod::GET, headers, Vec::new());
        let sent = self.endpoint.send(&request, STREAM_OPERATION).await;
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
            ResponseKind::ErrorStatus(failure, session) => {
                let beginning = response.body.read_prefix(EXCERPT_BYTES).await;
                Err(StreamUnavailable::Never(with_excerpt(failure, &beginning, session)))
            }
            ResponseKind::Failed(failure) => Err(StreamUnavailable::Never(failure)),
        }
    }

    /// Starts the task that drives the standalone stream, if it is pending.
    pub(super) fn start_standalone(&self, start: impl FnOnce(watch::Sender<bool>) -> AbortHandle) {
        let mut state = self.lock();
        if matches!(state.standalone, StandaloneStream::Pending) {
            let (opened_sender, is_opened) = watch::channel(false);
            let deadline = Instant::now() + STANDALONE_STREAM_TIMEOUT;
            state.standalone = StandaloneStream::Running(StandaloneStreamTask {
                task: start(opened_sender),
                is_opened,
                deadline,
            });
        }
    }

    /// Waits until the standalone stream is open, is known to be unavailable, or times out. Some servers drop
    /// messages while no client has the stream open.
    pub(super) fn standalone_opened(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (mut is_opened, deadline) = match &self.lock().standalone {
            StandaloneStream::Running(listener) if !*listener.is_opened.borrow() => {
                (listener.is_opened.clone(), listener.deadline)
            }
            _ => return None,
        };
        Some(async move {
            let _ = timeout_at(deadline, is_opened.wait_for(|is_opened| *is_opened)).await;
        })
    }

    /// Closes the session gracefully, with everything that belongs to it.
    pub(super) async fn close(&self) {
        self.close_signal.close();
        let background_posts = std::mem::take(&mut self.lock().background_posts);
        let _ = timeout(FINAL_POST_TIMEOUT, background_posts.join_all()).await;
        if let Some(headers) = self.take_session_headers() {
            self.delete_session(headers).await;
        }
        self.unsolicited.send_closed();
    }

    /// Closes the session without waiting. Posts in flight continue, and the session is deleted in the background
    /// if there is a runtime.
    pub(super) fn abandon(self: &Arc<Self>) {
        self.lock().background_posts.detach_all();
        let Some(headers) = self.take_session_headers() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = self.clone();
        runtime.spawn(async move { shared.delete_session(headers).await });
    }

    /// Removes the session, and returns the headers with its id; `None` if the server has no sessions, or keeps this
    /// one.
    fn take_session_headers(&self) -> Option<HeaderLines> {
        let session = self.take_session();
        if self.lock().keeps_session {
            return None;
        }
        let mut headers = self.stream_headers.clone();
        (session.add_session_headers(&mut headers) == InSession::Yes).then_some(headers)
    }

    /// Deletes the session at the server. Servers need not support this, and a session that is gone already is
    /// fine.
    async fn delete_session(&self, headers: HeaderLines) {
        let request = self.endpoint.build_request(HttpMethod::DELETE, headers, Vec::new());
        if let Ok(Err(error)) = timeout(DELETE_TIMEOUT, self.endpoint.send(&request, DELETE_OPERATION)).await
        {
            tracing::debug!(%error, "the session was not ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HttpState> {
        self.state.lock()
    }
}

/// Reports whether a status means temporary overload.
fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS)
}

/// Converts an HTTP error to a transport failure.
pub(super) fn http_failure(error: HttpError) -> TransportFailure {
    let delivery = error.delivery();
    let kind = match error {
        HttpError::TooLong { limit } => TransportFailureKind::TooLong { limit },
        HttpError::Malformed(_) => TransportFailureKind::Malformed(error.to_string()),
        error => TransportFailureKind::Closed(FailureCause::from_error(error)),
    };
    TransportFailure { delivery, kind }
}

impl fmt::Debug for HttpShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("HttpShared")
            .field("endpoint", &self.endpoint)
            .field("session", &state.session)
            .field("standing", &state.standalone)
            .finish_non_exhaustive()
    }
}
