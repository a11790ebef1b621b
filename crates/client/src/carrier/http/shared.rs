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
use trunkline_protocol::{Id, Refusal, Revision, emit};
use trunkline_transport::Url;
use trunkline_transport::dial::Dialer;
use trunkline_transport::http::{HeaderLines, HttpError, HttpResponse, OtherOrigin, Reach as HttpReach};

use super::HttpLimits;
use super::answer::{self, Answer, InSession, explain};
use super::closing::Closing;
use super::endpoint::Endpoint;
use super::events::Events;
use super::head::{self, Headers};
use super::session::Session;
use crate::carrier::{Aside, Loss, LossKind, Mirror, Outgoing, Posted, Reach};

/// How long the server has to take a notification or an answer.
const POSTED_WITHIN: Duration = Duration::from_secs(30);

/// How long a server may take to say whether it has a standing stream, before a request that needs one is sent anyway.
const LISTENING_WITHIN: Duration = Duration::from_secs(2);

/// How long what is still being posted at the end is waited for.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(2);

/// How long the server has to end a session.
const DELETED_WITHIN: Duration = Duration::from_secs(5);

/// Cancellations and the like that are being posted at one time; beyond it they are dropped.
const MOST_BESIDE: usize = 64;

/// How much of the body of a refusal is read, for people.
const EXCERPT_BYTES: usize = 2048;

/// What a request most likely adds to the headers that all have.
const ROOM: usize = 256;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What the requests to one endpoint have in common.
pub(super) struct Shared {
    pub(super) limits: HttpLimits,
    pub(super) aside: Aside,
    pub(super) places: Arc<Semaphore>,
    endpoint: Endpoint,
    post_headers: HeaderLines,
    stream_headers: HeaderLines,
    state: Mutex<State>,
    /// Whether the client has closed the connection, by which every request ends.
    pub(super) closing: Closing,
}

#[derive(Default)]
struct State {
    session: Session,
    /// How many sessions there were.
    number: u64,
    standing: Standing,
    beside: JoinSet<()>,
}

/// The stream for what belongs to no request.
#[derive(Debug, Default)]
enum Standing {
    /// There is no session that it could belong to.
    #[default]
    Off,
    /// It is opened once the handshake is over.
    Due,
    /// It is driven by a task.
    On(Listener),
}

/// The task that drives the standing stream.
#[derive(Debug)]
struct Listener {
    task: AbortHandle,
    /// Whether the server has said for the first time if there is such a stream.
    is_settled: watch::Receiver<bool>,
    /// Until when that is waited for.
    until: Instant,
}

/// Why there is no stream.
#[derive(Debug)]
pub(super) enum NoStream {
    /// There may be one later; with a sentence that says what happened.
    Later(String),
    /// There will be none.
    Never(Loss),
}

impl Shared {
    pub(super) fn new(
        dialer: Dialer,
        url: &Url,
        headers: &Headers,
        limits: HttpLimits,
        aside: Aside,
    ) -> Result<Self, OtherOrigin> {
        Ok(Self {
            limits,
            aside,
            places: Arc::new(Semaphore::new(limits.in_flight)),
            endpoint: Endpoint::new(dialer, url)?,
            post_headers: headers.post().into(),
            stream_headers: headers.stream().into(),
            state: Mutex::default(),
            closing: Closing::default(),
        })
    }

    /// Reports whether the connection was closed.
    pub(super) fn is_over(&self) -> bool {
        self.closing.is_over()
    }

    /// Sends a request of the protocol and judges the head of its response.
    pub(super) async fn send(&self, outgoing: &mut Outgoing) -> Result<(Answer, HttpResponse), Loss> {
        let mut headers = self.post_headers.with_room(ROOM);
        head::mirror(&mut headers, &outgoing.mirror, Some(&outgoing.method));
        let session = self.enter(&outgoing.mirror, &mut headers);
        let body = std::mem::take(&mut outgoing.body).into();
        let request = self.endpoint.address(HttpMethod::POST, headers, body);
        let response = self.endpoint.send(&request).await.map_err(|error| lost(&error))?;
        let answer = answer::judge(response.status, &response.headers, session);
        if outgoing.mirror == Mirror::Nothing && matches!(answer, Answer::Json | Answer::Events) {
            let session = Session::open(&response.headers).map_err(answer::malformed)?;
            // Only now, and not when the handshake was sent: until then whoever calls hears that the session is gone and waits
            // for the new one, and if no new one comes about, the next who calls tries again.
            let mut state = self.lock();
            state.session = session;
            state.number += 1;
            if let Standing::On(listener) = std::mem::replace(&mut state.standing, Standing::Due) {
                listener.task.abort();
            }
        }
        Ok((answer, response))
    }

    /// Adds the session that a message belongs to, if it belongs to one.
    fn enter(&self, mirror: &Mirror, headers: &mut HeaderLines) -> InSession {
        let Mirror::Version(revision) = mirror else { return InSession::No };
        let mut state = self.lock();
        state.session.speaks(*revision);
        state.session.name_itself(headers)
    }

    /// Forgets the session, and returns it.
    fn leave(&self) -> Session {
        let mut state = self.lock();
        if let Standing::On(listener) = std::mem::take(&mut state.standing) {
            listener.task.abort();
        }
        std::mem::take(&mut state.session)
    }

    /// Sends a notification or an answer.
    pub(super) async fn post(&self, posted: Posted) -> Result<(), Loss> {
        let mut headers = self.post_headers.with_room(ROOM);
        head::mirror(&mut headers, &posted.mirror, None);
        let session = self.enter(&posted.mirror, &mut headers);
        self.deliver(posted.body, headers, session).await
    }

    async fn deliver(&self, body: String, headers: HeaderLines, session: InSession) -> Result<(), Loss> {
        let request = self.endpoint.address(HttpMethod::POST, headers, body.into());
        let sending = async {
            let mut response = self.endpoint.send(&request).await.map_err(|error| lost(&error))?;
            match answer::judge_status(response.status, &response.headers, session) {
                None => {
                    response.body.finish();
                    Ok(())
                }
                Some(loss) => {
                    let beginning = response.body.read_beginning(EXCERPT_BYTES).await;
                    Err(explain(loss, &beginning, session))
                }
            }
        };
        let late = || Err(Loss::may_have_reached("the server did not take a message in time"));
        timeout(POSTED_WITHIN, sending).await.unwrap_or_else(|_| late())
    }

    /// Sends something to the session that nobody waits for.
    pub(super) fn post_beside(self: &Arc<Self>, body: String) {
        if self.is_over() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = self.clone();
        let posting = async move {
            let mut headers = shared.post_headers.clone();
            let session = shared.lock().session.name_whole(&mut headers);
            if let Err(loss) = shared.deliver(body, headers, session).await {
                tracing::debug!(?loss, "a message was not taken");
            }
        };
        let mut state = self.lock();
        while state.beside.try_join_next().is_some() {}
        if state.beside.len() < MOST_BESIDE {
            state.beside.spawn_on(posting, &runtime);
        } else {
            tracing::debug!("dropped a message, since too many wait to be posted");
        }
    }

    /// Answers a ping.
    pub(super) fn pong(self: &Arc<Self>, id: &Id) {
        self.post_beside(emit::result(id, 2, |writer| writer.verbatim("{}")));
    }

    /// Refuses a question, since too many wait already.
    pub(super) fn refuse(self: &Arc<Self>, id: &Id) {
        self.post_beside(emit::error(Some(id), &Refusal::TOO_MANY, Revision::NEWEST_LEGACY));
    }

    /// Returns which of the sessions that there were is the present one.
    pub(super) fn session_number(&self) -> u64 {
        self.lock().number
    }

    /// Opens a stream of a session, or takes one up again behind the event that was last. One of a session that is over is
    /// never looked for in the next, where the same event may be another's.
    pub(super) async fn open_stream(&self, of: u64, last: Option<&HeaderValue>) -> Result<Events, NoStream> {
        let mut headers = self.stream_headers.clone();
        let session = {
            let state = self.lock();
            if state.number != of {
                return Err(NoStream::Never(Loss::may_have_reached("the server has forgotten the session")));
            }
            state.session.name_whole(&mut headers)
        };
        if let Some(last) = last {
            headers.add(&LAST_EVENT_ID, last);
        }
        let request = self.endpoint.address(HttpMethod::GET, headers, Vec::new());
        let sent = self.endpoint.send(&request).await;
        let mut response = sent.map_err(|error| NoStream::Later(error.to_string()))?;
        match answer::judge(response.status, &response.headers, session) {
            Answer::Events => Ok(Events::new(response.body, &self.limits)),
            Answer::Json => {
                let problem = "the server answered a request for a stream with JSON".to_owned();
                Err(NoStream::Never(answer::malformed(problem)))
            }
            Answer::Refused(..) if response.status.is_server_error() || is_busy(response.status) => {
                Err(NoStream::Later(format!("the server answered with status {}", response.status)))
            }
            Answer::Refused(loss, session) => {
                let beginning = response.body.read_beginning(EXCERPT_BYTES).await;
                Err(NoStream::Never(explain(loss, &beginning, session)))
            }
            Answer::Lost(loss) => Err(NoStream::Never(loss)),
        }
    }

    /// Starts the task that drives the standing stream, if it is due.
    pub(super) fn stand(&self, start: impl FnOnce(watch::Sender<bool>) -> AbortHandle) {
        let mut state = self.lock();
        if matches!(state.standing, Standing::Due) {
            let (settle, is_settled) = watch::channel(false);
            let until = Instant::now() + LISTENING_WITHIN;
            state.standing = Standing::On(Listener { task: start(settle), is_settled, until });
        }
    }

    /// Waits until the standing stream is there, or it is clear that it is not, or that takes too long. There are servers
    /// that drop what they have to say if nobody listens.
    pub(super) fn until_listening(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (mut is_settled, until) = match &self.lock().standing {
            Standing::On(listener) if !*listener.is_settled.borrow() => {
                (listener.is_settled.clone(), listener.until)
            }
            _ => return None,
        };
        Some(async move {
            let _ = timeout_at(until, is_settled.wait_for(|is_settled| *is_settled)).await;
        })
    }

    /// Ends the session and everything that belongs to it, in an orderly way.
    pub(super) async fn close(&self) {
        self.closing.close();
        let beside = std::mem::take(&mut self.lock().beside);
        let _ = timeout(LAST_WORDS_WITHIN, beside.join_all()).await;
        if let Some(headers) = self.parting() {
            self.delete(headers).await;
        }
        self.aside.closed();
    }

    /// Lets everything go at once; what is being posted still is, and the server hears of the end if there is somebody
    /// who can tell it.
    pub(super) fn abandon(self: &Arc<Self>) {
        self.lock().beside.detach_all();
        let Some(headers) = self.parting() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = self.clone();
        runtime.spawn(async move { shared.delete(headers).await });
    }

    /// Leaves the session, and returns the headers that say which it was; nothing if the server keeps none.
    fn parting(&self) -> Option<HeaderLines> {
        let session = self.leave();
        let mut headers = self.stream_headers.clone();
        (session.name_whole(&mut headers) == InSession::Yes).then_some(headers)
    }

    /// Tells the server that a session is over. It need not offer this, and one that is gone already is what was wanted.
    async fn delete(&self, headers: HeaderLines) {
        let request = self.endpoint.address(HttpMethod::DELETE, headers, Vec::new());
        if let Ok(Err(error)) = timeout(DELETED_WITHIN, self.endpoint.send(&request)).await {
            tracing::debug!(%error, "the session was not ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Tells whether a status only says that it is too much at the moment.
fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS)
}

/// Says what an error of HTTP means for a request.
pub(super) fn lost(error: &HttpError) -> Loss {
    let reach = match error.reach() {
        HttpReach::NotReached => Reach::NotReached,
        HttpReach::MayHaveReached => Reach::MayHaveReached,
    };
    let kind = match error {
        HttpError::TooLong { limit } => LossKind::TooLong { limit: *limit },
        HttpError::Malformed(_) => LossKind::Malformed(error.to_string()),
        _ => LossKind::Closed(error.to_string()),
    };
    Loss { reach, kind }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Shared")
            .field("endpoint", &self.endpoint)
            .field("session", &state.session)
            .field("standing", &state.standing)
            .finish_non_exhaustive()
    }
}
