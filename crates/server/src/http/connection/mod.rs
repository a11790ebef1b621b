//! One connection of the listener: HTTP/1.1, a request after the other, in one task.
//!
//! A request that is here with its body, and whose answer is ready, is one read and one write. There is no task, no channel, no
//! lock and no timer in between; where many are ready at one time, all are read before the first answer is written.

mod body;
mod company;
mod handover;
mod head;
mod patience;
mod reply;
mod socket;
mod wire;
mod writing;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode, Version, response};
use http_body::Body;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::oneshot;
use trunkline_transport::http1::read_length;

use self::body::Lender;
pub use self::body::RequestBody;
use self::company::after_others;
use self::handover::HandedOver;
pub(super) use self::handover::Handover;
use self::head::{Head, Wrong};
use self::patience::{Patience, Wait};
use self::reply::{Ending, Length};
pub(super) use self::socket::{Socket, Stream};
use self::wire::Wire;
use self::writing::Writing;
use super::arrival::{Arrival, Responder};
use super::peer::PeerInfo;
use crate::limits::Limits;
use crate::shutdown::Shutdown;

/// How long a peer may go on with a request that was answered before it was read. Closing at once would take the answer from
/// it: the system breaks a connection on which something was left unread.
const LINGER: Duration = Duration::from_secs(2);

/// Whoever answers the requests of a connection, and how long they are waited for.
pub(super) struct Connection<S> {
    service: S,
    /// What requests are told of the connection; `None` where nobody would look.
    peer: Option<PeerInfo>,
    patience: Patience,
    shutdown: Shutdown,
    draining: Pin<Box<OwnedNotified>>,
    is_watching: bool,
}

/// Who has the connection while a request is answered.
enum Holder {
    Here(Box<Wire>),
    /// The body of the request, which is still coming.
    Body(Lender),
}

impl Holder {
    /// Takes the connection, whoever has it.
    fn take(self) -> Option<Box<Wire>> {
        match self {
            Self::Here(wire) => Some(wire),
            Self::Body(lender) => lender.revoke(),
        }
    }

    /// Polls for the end of the peer. Before the end of the body only its reader can tell.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Body(lender) = self
            && let Some(wire) = lender.end()
        {
            *self = Self::Here(wire);
        }
        match self {
            Self::Here(wire) => wire.poll_gone(cx),
            Self::Body(_) => Poll::Pending,
        }
    }
}

/// What a request says of its response.
struct Asked {
    is_head: bool,
    version: Version,
    keeps_alive: bool,
    handover: Option<oneshot::Sender<HandedOver>>,
}

/// What becomes of a connection behind a response.
enum Next {
    Request,
    End,
    Handover(oneshot::Sender<HandedOver>),
}

impl<S: Responder> Connection<S> {
    pub(super) fn new(service: S, peer: Option<PeerInfo>, limits: &Limits, shutdown: Shutdown) -> Self {
        let (patience, draining) = (Patience::new(limits), Box::pin(shutdown.watch_draining()));
        Self { service, peer, patience, shutdown, draining, is_watching: false }
    }

    /// Answers the requests of a connection until it ends.
    pub(super) async fn serve(mut self, socket: Socket) -> io::Result<()> {
        let mut wire = Box::new(Wire::new(socket));
        loop {
            let head = match poll_fn(|cx| self.poll_head(cx, &mut wire)).await {
                Ok(Some(head)) => head,
                Ok(None) => return close(&mut wire).await,
                Err(wrong) => return refuse(&mut wire, wrong).await,
            };
            let (request, asked, holder) = self.take(head, wire);
            let Some((response, back)) = self.answer(request, holder).await else { return Ok(()) };
            wire = back;
            if !self.shutdown.is_draining() {
                after_others().await;
            }
            let keeps_alive = asked.keeps_alive && !self.shutdown.is_draining();
            match respond(&mut wire, response, Asked { keeps_alive, ..asked }).await? {
                Next::Request => wire.rest(),
                Next::End => return close(&mut wire).await,
                Next::Handover(to) => {
                    // Whoever wanted it may be gone by now.
                    let _ = to.send(wire.into_socket());
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the head of the next request; `None` if it is not waited for any longer.
    fn poll_head(&mut self, cx: &mut Context<'_>, wire: &mut Wire) -> Poll<Result<Option<Head>, Wrong>> {
        if !std::mem::replace(&mut self.is_watching, true) {
            // The task's waker stays the same, so that asking once to be woken is enough.
            let _ = self.draining.as_mut().poll(cx);
        }
        let head = wire.poll_head(cx);
        if head.is_ready() {
            return head;
        }
        if wire.is_idle() && self.shutdown.is_draining() {
            return Poll::Ready(Ok(None));
        }
        let wait = if wire.is_idle() { Wait::Request } else { Wait::Head };
        self.patience.poll_end(cx, wait).map(|()| Ok(None))
    }

    /// Makes a request of a head and of what is here of its body.
    fn take(&mut self, head: Head, mut wire: Box<Wire>) -> (Arrival, Asked, Holder) {
        self.patience.asked();
        let Head { request: mut head, keeps_alive, upgrades, .. } = head;
        let (is_head, version) = (*head.method() == Method::HEAD, head.version());
        let mut asked = Asked { is_head, version, keeps_alive, handover: None };
        if let Some(peer) = self.peer {
            head.extend(peer);
        }
        if upgrades {
            let (sender, handover) = Handover::new();
            head.extend(handover);
            asked.handover = Some(sender);
        }
        let (body, holder) = match wire.take_whole_body() {
            Some(bytes) => (RequestBody::whole(bytes), Holder::Here(wire)),
            None => {
                let lender = Lender::new(wire);
                (RequestBody::coming(lender.loan()), Holder::Body(lender))
            }
        };
        (Arrival { head, body }, asked, holder)
    }

    /// Waits for the response to a request; `None` if the peer is gone before.
    async fn answer(
        &mut self,
        request: Arrival,
        mut holder: Holder,
    ) -> Option<(Response<S::Body>, Box<Wire>)> {
        let mut answer = pin!(self.service.respond(request));
        let response = poll_fn(|cx| {
            if let Poll::Ready(response) = answer.as_mut().poll(cx) {
                return Poll::Ready(Some(response));
            }
            if holder.poll_gone(cx).is_ready() {
                return Poll::Ready(None);
            }
            self.patience.poll_end(cx, Wait::Response).map(|()| None)
        })
        .await?;
        Some((response, holder.take()?))
    }
}

/// Writes a response, as fast as it is made and taken.
async fn respond<B>(wire: &mut Wire, response: Response<B>, asked: Asked) -> io::Result<Next>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = response.into_parts();
    let length = length(&parts, &body, &asked);
    let handover = asked.handover.filter(|_| parts.status == StatusCode::SWITCHING_PROTOCOLS);
    if parts.status.is_informational() && handover.is_none() {
        // The next response would be taken for the one to this request.
        return Err(io::Error::other(format!("{} is not an answer to this request", parts.status)));
    }
    let is_read = wire.body().is_over() || poll_fn(|cx| Poll::Ready(wire.skip_body(cx))).await;
    let keeps_alive =
        asked.keeps_alive && is_read && length != Length::UntilClose && !reply::says_close(&parts);
    let ending = if keeps_alive || handover.is_some() { Ending::Keep } else { Ending::Close };
    wire.begin(&parts, length, ending);
    drop(parts);
    let mut writing = Writing::new(length, asked.is_head);
    let mut body = pin!(body);
    poll_fn(|cx| poll_body(cx, wire, body.as_mut(), &mut writing)).await?;
    Ok(match (handover, ending) {
        (Some(to), _) => Next::Handover(to),
        (None, Ending::Keep) if writing.is_whole() => Next::Request,
        _ => Next::End,
    })
}

/// Writes the body of a response and what is before it.
fn poll_body<B>(
    cx: &mut Context<'_>,
    wire: &mut Wire,
    mut body: Pin<&mut B>,
    writing: &mut Writing,
) -> Poll<io::Result<()>>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    loop {
        let mut is_waiting = false;
        while !writing.is_over && wire.has_room() && !is_waiting {
            match body.as_mut().poll_frame(cx) {
                Poll::Pending => is_waiting = true,
                Poll::Ready(None) => writing.write::<B::Data>(wire, None),
                Poll::Ready(Some(Ok(frame))) => {
                    // There are trailers too, which nobody here sends.
                    if let Ok(data) = frame.into_data() {
                        writing.write(wire, Some(data));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        std::task::ready!(wire.poll_flush(cx))?;
        if writing.is_over {
            return Poll::Ready(Ok(()));
        }
        if is_waiting {
            wire.stand_by();
            return wire.poll_gone(cx).map(|()| Err(io::ErrorKind::ConnectionAborted.into()));
        }
    }
}

/// Returns how long the body of a response is, and how that is told.
fn length(parts: &response::Parts, body: &impl Body, asked: &Asked) -> Length {
    let status = parts.status;
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Length::Without;
    }
    // Whoever answers a request for the head alone knows how long the body would have been.
    let told = || parts.headers.get(CONTENT_LENGTH).and_then(|length| read_length(length.as_bytes()));
    match body.size_hint().exact() {
        Some(0) if asked.is_head => Length::Known(told().unwrap_or(0)),
        Some(bytes) => Length::Known(bytes),
        None if asked.version == Version::HTTP_11 => Length::Chunked,
        None => Length::UntilClose,
    }
}

/// Says what is wrong with a head, and ends the connection: where the next request would begin is not known.
#[cold]
async fn refuse(wire: &mut Wire, wrong: Wrong) -> io::Result<()> {
    tracing::debug!(status = wrong.status.as_u16(), wrong.sentence, "a head was refused");
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = wrong.status;
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    wire.begin(&parts, Length::Known(wrong.sentence.len() as u64), Ending::Close);
    wire.say(format_args!("{}", wrong.sentence));
    poll_fn(|cx| wire.poll_flush(cx)).await?;
    wire.expect_anything();
    close(wire).await
}

/// Ends a connection once its last response is written.
async fn close(wire: &mut Wire) -> io::Result<()> {
    // A peer that is gone already need not be told.
    let _ = poll_fn(|cx| wire.poll_close(cx)).await;
    // What is here already is read in any case.
    let is_gone = poll_fn(|cx| Poll::Ready(wire.poll_discard(cx).is_ready())).await;
    if !is_gone && !wire.body().is_over() {
        let _ = tokio::time::timeout(LINGER, poll_fn(|cx| wire.poll_discard(cx))).await;
    }
    Ok(())
}
