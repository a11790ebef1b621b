//! The server end of one HTTP/1.1 connection: one request after the other, in one task.
//!
//! A request that arrives with its body, and has its response ready, is one read and one write. There is no task, no channel, no
//! lock and no timer in between.
//!
//! # Invariants
//!
//! - A request head that two parsers could read differently is rejected: `ambiguous_request_heads_are_rejected`.
//! - Bytes after a malformed chunk are never parsed as a request:
//!   `bytes_after_a_malformed_chunk_are_not_parsed_as_a_request`.
//! - Each request gets its own response, however the bytes are split:
//!   `pipelined_requests_get_their_own_responses_for_any_fragmentation`.
//! - A client that closes its side behind a request gets its response, and the call of one that is gone is cancelled:
//!   `half_closed_clients_get_their_responses_and_gone_ones_are_cancelled`.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode, Version, response};
use http_body::Body;
use tokio::sync::oneshot;

use super::body::{BodyReaderOwner, RequestBody};
use super::body_writer::ResponseBodyWriter;
use super::connection_io::ConnectionIo;
use super::deadlines::{ConnectionDeadlines, ConnectionTimeouts, ConnectionWait};
use super::half_closed::{LivenessProbe, PeerWatch};
use super::incoming_request::{IncomingRequest, Service};
use super::request_head::{ParsedRequestHead, RequestHeadError};
use super::response_head::{self, ConnectionPersistence, ResponseLength};
use super::server_stream::{DrainSignal, ServerStream};
use super::upgrade::{ConnectionUpgrade, UpgradedConnection};
use crate::read_length;

/// How long a peer may go on with a request that was answered before it was read. Closing at once would take the answer from
/// it: the system breaks a connection on which something was left unread.
const LINGER: Duration = Duration::from_secs(2);

/// Reports whether a request to a path is answered.
type PathFilter = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The refusal of a request that the filter of its connection does not let through.
const FULL: RequestHeadError = RequestHeadError {
    status: StatusCode::SERVICE_UNAVAILABLE,
    message: "too many connections; try again later",
};

/// One connection of a server: the service that answers its requests, and its timeouts.
pub struct ServerConnection<S, P, D: DrainSignal> {
    service: S,
    /// An extension of each request that describes the peer; `None` where no service reads it.
    peer: Option<P>,
    remote_address: Option<IpAddr>,
    /// Whether a path is served, if there is but one request.
    single_request: Option<PathFilter>,
    deadlines: ConnectionDeadlines,
    shutdown: D,
    draining: Pin<Box<D::Draining>>,
    is_watching: bool,
}

/// Who has the connection while a request is answered.
enum ConnectionOwner<K: ServerStream> {
    Task(Box<ConnectionIo<K>>),
    /// The body of the request, which is still coming.
    Body(BodyReaderOwner<K>),
}

impl<K: ServerStream> ConnectionOwner<K> {
    /// Takes the connection back from the task or the body that has it.
    fn reclaim(self) -> Option<Box<ConnectionIo<K>>> {
        match self {
            Self::Task(io) => Some(io),
            Self::Body(lender) => lender.reclaim(),
        }
    }

    /// Polls for the end of the peer. Before the end of the body only its reader can detect that.
    fn poll_gone(&mut self, cx: &mut Context<'_>, watch: &mut PeerWatch, probe: LivenessProbe) -> Poll<()> {
        if let Self::Body(lender) = self
            && let Some(io) = lender.reclaim_finished()
        {
            *self = Self::Task(io);
        }
        match self {
            Self::Task(io) => watch.poll_gone(cx, io, probe),
            Self::Body(_) => Poll::Pending,
        }
    }
}

/// What a response depends on in its request.
struct ResponseContext<K> {
    method: Method,
    version: Version,
    keep_alive: bool,
    /// The state of the peer since the request.
    watch: PeerWatch,
    upgrade: Option<oneshot::Sender<UpgradedConnection<K>>>,
}

/// What becomes of a connection behind a response.
enum AfterResponse<K> {
    Request,
    Close,
    Upgrade(oneshot::Sender<UpgradedConnection<K>>),
}

impl<S: Service, P: Clone + Send + Sync + 'static, D: DrainSignal> ServerConnection<S, P, D> {
    /// Makes a connection with a service that answers its requests; each of them has `peer` as an extension.
    pub fn new(service: S, peer: Option<P>, timeouts: &ConnectionTimeouts, shutdown: D) -> Self {
        let (deadlines, draining) = (ConnectionDeadlines::new(timeouts), Box::pin(shutdown.watch_draining()));
        let (remote_address, single_request, is_watching) = (None, None, false);
        Self { service, peer, remote_address, single_request, deadlines, shutdown, draining, is_watching }
    }

    /// Limits the connection to one request, to a path that the filter accepts; any other request is refused with status 503.
    #[must_use]
    pub fn with_single_request(mut self, accepts: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.single_request = Some(Box::new(accepts));
        self
    }

    /// Sets the address that the connection comes from.
    #[must_use]
    pub fn with_remote_address(mut self, address: IpAddr) -> Self {
        self.remote_address = Some(address);
        self
    }

    /// Answers the requests of a connection until it ends.
    ///
    /// # Errors
    /// The connection broke, or the body of a response did.
    pub async fn serve<K: ServerStream>(mut self, socket: K) -> io::Result<()> {
        let mut io = Box::new(ConnectionIo::new(socket));
        let mut has_yielded = false;
        loop {
            let head = match poll_fn(|cx| self.poll_head(cx, &mut io)).await {
                Ok(Some(head)) => head,
                // What arrived before the drain may not be known to be readable yet: the runtime looks first.
                Ok(None) if io.is_idle() && self.shutdown.is_draining() && !has_yielded => {
                    has_yielded = true;
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(None) => return close(&mut io).await,
                Err(wrong) => return refuse(&mut io, wrong).await,
            };
            if self.single_request.as_ref().is_some_and(|accepts| !accepts(head.request.path())) {
                return refuse(&mut io, FULL).await;
            }
            let (request, mut asked, holder) = self.build_request(head, io);
            let Some((response, back)) = self.answer(request, &mut asked, holder).await else {
                return Ok(());
            };
            io = back;
            let keeps_alive =
                asked.keep_alive && self.single_request.is_none() && !self.shutdown.is_draining();
            match respond(&mut io, response, ResponseContext { keep_alive: keeps_alive, ..asked }).await? {
                AfterResponse::Request => io.shrink_buffers(),
                AfterResponse::Close => return close(&mut io).await,
                AfterResponse::Upgrade(to) => {
                    // The task that wanted the connection may be gone by now.
                    let _ = to.send(io.into_socket());
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the head of the next request; `None` if it is not waited for any longer.
    fn poll_head<K: ServerStream>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut ConnectionIo<K>,
    ) -> Poll<Result<Option<ParsedRequestHead>, RequestHeadError>> {
        if !std::mem::replace(&mut self.is_watching, true) {
            // The task's waker stays the same, so that asking once to be woken is enough.
            let _ = self.draining.as_mut().poll(cx);
        }
        let head = io.poll_head(cx);
        if head.is_ready() {
            return head;
        }
        if io.is_idle() && self.shutdown.is_draining() {
            return Poll::Ready(Ok(None));
        }
        let wait = if io.is_idle() { ConnectionWait::Request } else { ConnectionWait::Head };
        self.deadlines.poll_expired(cx, wait).map(|()| Ok(None))
    }

    /// Makes a request of a head and of what is here of its body.
    fn build_request<K: ServerStream>(
        &mut self,
        head: ParsedRequestHead,
        mut io: Box<ConnectionIo<K>>,
    ) -> (IncomingRequest, ResponseContext<K>, ConnectionOwner<K>) {
        self.deadlines.request_received();
        let ParsedRequestHead { request: mut head, keep_alive: keeps_alive, upgrades, .. } = head;
        let (method, version) = (head.method().clone(), head.version());
        let watch = PeerWatch::default();
        let mut asked = ResponseContext { method, version, keep_alive: keeps_alive, watch, upgrade: None };
        head.set_remote_address(self.remote_address);
        if let Some(peer) = self.peer.clone() {
            head.insert_extension(peer);
        }
        if upgrades {
            let (sender, handover) = ConnectionUpgrade::new();
            head.insert_extension(handover);
            asked.upgrade = Some(sender);
        }
        let (body, holder) = match io.take_whole_body() {
            Some(bytes) => (RequestBody::whole(bytes), ConnectionOwner::Task(io)),
            None => {
                let lender = BodyReaderOwner::new(io);
                (RequestBody::streaming(lender.reader()), ConnectionOwner::Body(lender))
            }
        };
        (IncomingRequest { head, body }, asked, holder)
    }

    /// Waits for the response to a request; `None` if the peer is gone before.
    async fn answer<K: ServerStream>(
        &mut self,
        request: IncomingRequest,
        asked: &mut ResponseContext<K>,
        mut holder: ConnectionOwner<K>,
    ) -> Option<(Response<S::Body>, Box<ConnectionIo<K>>)> {
        let probe = match asked.version {
            Version::HTTP_11 => LivenessProbe::InterimResponse,
            _ => LivenessProbe::Unavailable,
        };
        let mut answer = pin!(self.service.respond(request));
        let response = poll_fn(|cx| {
            if let Poll::Ready(response) = answer.as_mut().poll(cx) {
                return Poll::Ready(Some(response));
            }
            if holder.poll_gone(cx, &mut asked.watch, probe).is_ready() {
                return Poll::Ready(None);
            }
            self.deadlines.poll_expired(cx, ConnectionWait::Response).map(|()| None)
        })
        .await?;
        Some((response, holder.reclaim()?))
    }
}

impl<S, P, D: DrainSignal> fmt::Debug for ServerConnection<S, P, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConnection").field("deadlines", &self.deadlines).finish_non_exhaustive()
    }
}

/// Writes a response, as fast as it is made and taken.
async fn respond<K, B>(
    io: &mut ConnectionIo<K>,
    response: Response<B>,
    mut asked: ResponseContext<K>,
) -> io::Result<AfterResponse<K>>
where
    K: ServerStream,
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = response.into_parts();
    let length = length(&parts, &body, &asked);
    let handover = asked.upgrade.filter(|_| parts.status == StatusCode::SWITCHING_PROTOCOLS);
    if parts.status.is_informational() && handover.is_none() {
        // The next response would be taken for the one to this request.
        return Err(io::Error::other(format!("{} is not an answer to this request", parts.status)));
    }
    let is_read = io.body().is_complete() || poll_fn(|cx| Poll::Ready(io.skip_body(cx))).await;
    let keeps_alive = asked.keep_alive
        && is_read
        && length != ResponseLength::UntilClose
        && !response_head::wants_close(&parts);
    let ending = if keeps_alive || handover.is_some() {
        ConnectionPersistence::KeepAlive
    } else {
        ConnectionPersistence::Close
    };
    io.begin_response(&parts, length, ending);
    // A `GET` opens a stream that answers nothing: it ends with the side of its client.
    let is_answer = asked.method == Method::POST && is_event_stream(&parts);
    drop(parts);
    let mut writing = ResponseBodyWriter::new(length, asked.method == Method::HEAD, is_answer);
    let mut body = pin!(body);
    poll_fn(|cx| poll_body(cx, io, body.as_mut(), &mut writing, &mut asked.watch)).await?;
    Ok(match (handover, ending) {
        (Some(to), _) => AfterResponse::Upgrade(to),
        (None, ConnectionPersistence::KeepAlive) if writing.is_complete() => AfterResponse::Request,
        _ => AfterResponse::Close,
    })
}

/// Writes the body of a response and what is before it.
fn poll_body<K, B>(
    cx: &mut Context<'_>,
    io: &mut ConnectionIo<K>,
    mut body: Pin<&mut B>,
    writing: &mut ResponseBodyWriter,
    watch: &mut PeerWatch,
) -> Poll<io::Result<()>>
where
    K: ServerStream,
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    loop {
        let mut is_waiting = false;
        while !writing.is_done && io.has_room() && !is_waiting {
            match body.as_mut().poll_frame(cx) {
                Poll::Pending => is_waiting = true,
                Poll::Ready(None) => writing.write::<B::Data>(io, None),
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are not sent.
                    if let Ok(data) = frame.into_data() {
                        writing.write(io, Some(data));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        std::task::ready!(io.poll_flush(cx))?;
        if writing.is_done {
            return Poll::Ready(Ok(()));
        }
        if is_waiting {
            io.release_read_buffer();
            let gone = watch.poll_gone(cx, io, writing.liveness_probe());
            return gone.map(|()| Err(io::ErrorKind::ConnectionAborted.into()));
        }
    }
}

fn is_event_stream(parts: &response::Parts) -> bool {
    let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}

/// Returns how long the body of a response is, and how it is framed (RFC 9112, section 6).
fn length(parts: &response::Parts, body: &impl Body, asked: &ResponseContext<impl Sized>) -> ResponseLength {
    let status = parts.status;
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return ResponseLength::NoBody;
    }
    // The service that answers `HEAD` knows how long the body would have been.
    let declared_length =
        || parts.headers.get(CONTENT_LENGTH).and_then(|length| read_length(length.as_bytes()));
    match body.size_hint().exact() {
        Some(0) if asked.method == Method::HEAD => ResponseLength::Known(declared_length().unwrap_or(0)),
        Some(bytes) => ResponseLength::Known(bytes),
        None if asked.version == Version::HTTP_11 => ResponseLength::Chunked,
        None => ResponseLength::UntilClose,
    }
}

/// Answers a malformed head with an error, and closes the connection: where the next request would begin is not known.
#[cold]
async fn refuse(io: &mut ConnectionIo<impl ServerStream>, wrong: RequestHeadError) -> io::Result<()> {
    tracing::debug!(status = wrong.status.as_u16(), wrong.message, "a head was refused");
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = wrong.status;
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    io.begin_response(
        &parts,
        ResponseLength::Known(wrong.message.len() as u64),
        ConnectionPersistence::Close,
    );
    io.write_text(format_args!("{}", wrong.message));
    poll_fn(|cx| io.poll_flush(cx)).await?;
    io.ignore_input();
    close(io).await
}

/// Ends a connection once its last response is written.
async fn close(io: &mut ConnectionIo<impl ServerStream>) -> io::Result<()> {
    // A peer that is gone already makes this fail, which changes nothing.
    let _ = poll_fn(|cx| io.poll_close(cx)).await;
    // What is here already is read in any case.
    let is_gone = poll_fn(|cx| Poll::Ready(io.poll_discard(cx).is_ready())).await;
    if !is_gone && !io.body().is_complete() {
        let _ = tokio::time::timeout(LINGER, poll_fn(|cx| io.poll_discard(cx))).await;
    }
    Ok(())
}
