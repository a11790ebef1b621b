//! Serving over a channel: both eras on one pipe, driven by one task.
//!
//! Every turn takes what the calls have to say, then every message that is already here, then writes once. A call is
//! polled in place when it arrives, so that one which is ready at once costs neither a task nor a wake-up.

mod carried;
mod ending;
mod ownership;
mod reading;
mod room;
mod session;

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SelectAll, Stream as _};
use tokio::sync::futures::OwnedNotified;
use trunkline_protocol::envelope::{self, Incoming, Malformed};
use trunkline_protocol::era::{self, Route};
use trunkline_protocol::{Id, Message, Refusal, Request, Revision, emit};
use trunkline_session::{Principal, SessionId};
use trunkline_transport::{Channel, ReceiveError};

use self::carried::{Cancellable, Carried, Said};
use self::ending::Left;
use self::reading::Reading;
use self::room::{Held, begins_a_call};
use crate::change::Subscription;
use crate::core::Core;
use crate::edge::legacy::{self, Carriage, LiveSession};
use crate::edge::modern::{self, Listen, Sender};
use crate::edge::{Event, id_in_use};
use crate::env::Env;
use crate::metrics::process;
use crate::unanswered::Reserved;
use crate::unread::Holding;

/// Messages taken from the peer, and from calls, in one turn before the others get theirs.
const MOST_PER_TURN: usize = 256;

/// Standing streams of changes on one channel.
const MOST_LISTENS: usize = 16;

/// What waits for a channel's peer below this is not counted with what waits for others: nearly always it is written in the
/// next turn.
const LITTLE: usize = 8 * 1024;

/// A channel carries requests both ways, and its variables are those of its session.
const CARRIAGE: Carriage = Carriage { may_ask: true, env: Env::NONE };

/// Serves one channel until its peer is gone, or the server shuts down.
pub(crate) struct ChannelServer<C> {
    core: Arc<Core>,
    principal: Principal,
    /// What tells its client from others that are of no session.
    id: SessionId,
    env: Env,
    channel: C,
    session: Option<Arc<LiveSession>>,
    /// What is kept between the client's calls goes by this name instead of the session's.
    bag: Option<SessionId>,
    watch: Option<Arc<Subscription>>,
    carried: SelectAll<Carried>,
    /// Modern calls that can be cancelled, by their id.
    modern: HashMap<Id, Cancellable>,
    listens: HashMap<Id, Listen>,
    /// Calls for which there was no room yet.
    held: Held,
    reading: Option<Reading>,
    draining: Pin<Box<OwnedNotified>>,
    stopping: Pin<Box<OwnedNotified>>,
    drained: bool,
    /// Whether somebody else ends the channel when the server stops, and counts what is lost with it.
    is_owned: bool,
    /// What the peer has not read; `None` if whatever carries the channel counts that.
    unread: Option<Holding>,
    /// How long calls may take once the channel ends; without it, as long as the limits say.
    grace: Option<Duration>,
    ended: bool,
    left: Left,
    /// Calls that were refused because their time was over.
    lost: usize,
}

impl<C> Unpin for ChannelServer<C> {}

impl<C: Channel> ChannelServer<C> {
    pub(crate) fn new(core: Arc<Core>, principal: Principal, channel: C) -> Self {
        let draining = Box::pin(core.shutdown.watch_draining());
        let stopping = Box::pin(core.shutdown.watch_stopping());
        let unread = Some(core.unread.holding());
        // Whoever is at the other end of our pipes started us, or was started by us, in one environment.
        let env = if principal == Principal::Process { core.env.process() } else { Env::default() };
        Self {
            core,
            principal,
            id: SessionId::random(),
            env,
            channel,
            session: None,
            bag: None,
            watch: None,
            carried: SelectAll::new(),
            modern: HashMap::new(),
            listens: HashMap::new(),
            held: Held::default(),
            reading: None,
            draining,
            stopping,
            drained: false,
            is_owned: false,
            unread,
            grace: None,
            ended: false,
            left: Left::default(),
            lost: 0,
        }
    }

    /// Takes what calls have to say; reports whether there was anything.
    fn take_events(&mut self, cx: &mut Context<'_>) -> bool {
        let mut taken = 0;
        // A call may never run out of words. Those of one turn fill half of the queue at most, so that there is room to
        // read what the peer has to say to that.
        while taken < MOST_PER_TURN && self.channel.queued() < self.core.limits.queued_bytes / 2 {
            let Poll::Ready(Some(said)) = Pin::new(&mut self.carried).poll_next(cx) else { break };
            taken += 1;
            self.carry_out(said);
        }
        taken > 0
    }

    fn carry_out(&mut self, said: Said) {
        match said {
            Said::Message(message) => self.channel.send(&message),
            Said::Resumed(id, shared) => {
                let known = self.modern.insert(id, Cancellable::Running(shared.clone()));
                if matches!(known, Some(Cancellable::Cancelled)) {
                    shared.cancel();
                }
            }
            Said::Listens(id, listen) => {
                let known = self.modern.remove(&id);
                if !matches!(known, Some(Cancellable::Cancelled)) {
                    self.listen(*listen);
                }
            }
            Said::Answer(id, message) => {
                if let Some(id) = id {
                    self.modern.remove(&id);
                }
                self.channel.send(&message);
            }
            Said::Nothing(id) => {
                if let Some(id) = id {
                    self.modern.remove(&id);
                }
            }
        }
    }

    fn take_changes(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while self.has_room() {
            let message = match &self.watch {
                Some(watch) => match watch.poll_message(cx) {
                    Poll::Ready(message) => message,
                    Poll::Pending => break,
                },
                None => break,
            };
            any = true;
            self.channel.send(&message);
        }
        for listen in self.listens.values() {
            while self.channel.queued() < self.core.limits.queued_bytes {
                let Poll::Ready(message) = listen.poll_message(cx) else { break };
                any = true;
                self.channel.send(&message);
            }
        }
        any
    }

    /// Takes the messages that are here; reports whether there was anything.
    fn take_messages(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut taken = 0;
        while self.has_room() && !self.is_full() && taken < MOST_PER_TURN {
            let Some((held, reserved)) = self.held.next() else { break };
            taken += 1;
            self.dispatch(held, reserved, cx);
        }
        // A server that drains reads on: calls that run may wait for an answer, and new ones are refused.
        while !self.ended && self.has_room() && taken < MOST_PER_TURN {
            let Poll::Ready(received) = self.channel.poll_receive(cx) else { break };
            taken += 1;
            match received {
                Some(Ok(message)) => self.receive(message, cx),
                Some(Err(ReceiveError::TooLong { limit })) => {
                    let refusal =
                        Refusal::TOO_LARGE.because(format!("a message may have at most {limit} bytes"));
                    self.send_error(None, &refusal);
                }
                Some(Err(ReceiveError::Broken(error))) => return Err(error),
                Some(Err(other)) => return Err(io::Error::other(other)),
                None => self.end(),
            }
        }
        if taken == MOST_PER_TURN {
            cx.waker().wake_by_ref();
        }
        Ok(taken > 0)
    }

    fn receive(&mut self, message: Bytes, cx: &mut Context<'_>) {
        let bytes = message.len();
        let room = self.reserve(bytes);
        match envelope::read(message, self.core.limits.bounds) {
            Ok(incoming) => match room {
                Ok(reserved) if self.must_wait(&incoming) => self.hold(incoming, bytes, reserved),
                Ok(reserved) => self.dispatch(incoming, reserved, cx),
                Err(refusal) if begins_a_call(&incoming) => self.refuse_unbegun(&incoming, &refusal),
                // An answer or a cancellation makes room in the end.
                Err(_) => self.dispatch(incoming, None, cx),
            },
            Err(Malformed { refusal, id }) => self.send_error(id.as_ref(), &refusal),
        }
    }

    fn dispatch(&mut self, incoming: Incoming, reserved: Option<Reserved>, cx: &mut Context<'_>) {
        match incoming {
            Incoming::One(message) => self.receive_one(message, reserved, cx),
            Incoming::Batch(mut messages) => match self.session.clone() {
                Some(session) => {
                    self.refuse_taken(&mut messages);
                    let begun = legacy::begin_batch(&self.core, &session, messages, &CARRIAGE);
                    self.begin_legacy(begun.keep(reserved), cx);
                    self.ask_roots();
                }
                None => self.send_error(None, &legacy::no_batches()),
            },
        }
    }

    fn receive_one(&mut self, message: Message, reserved: Option<Reserved>, cx: &mut Context<'_>) {
        match (era::route_channel(&message, self.session.is_some()), message) {
            (Route::Modern, Message::Request(request)) => self.receive_modern(request, reserved, cx),
            (Route::Initialize, Message::Request(request)) => self.initialize(&request),
            (Route::Refuse(refusal), Message::Request(request)) => {
                self.send_error(Some(&request.id), &refusal);
            }
            (Route::Session, message) => self.receive_legacy(message, reserved, cx),
            _ => {}
        }
    }

    fn receive_modern(&mut self, request: Request, reserved: Option<Reserved>, cx: &mut Context<'_>) {
        let is_legacy = |session: &Arc<LiveSession>| session.has_call(&request.id);
        if self.is_modern(&request.id) || self.session.as_ref().is_some_and(is_legacy) {
            self.channel.send(&modern::refuse(Some(&request.id), &id_in_use()).message);
            return;
        }
        match era::admit(&request, None, self.core.revisions) {
            Ok(admitted) => {
                let (principal, env) = (self.principal.clone(), self.env.clone());
                let sender = Sender { principal, connection: Some(self.id), env };
                let begun = modern::begin(&self.core, request, admitted, sender);
                let begun = match reserved {
                    Some(reserved) => begun.keep(reserved),
                    None => begun,
                };
                self.begin_modern(begun, cx);
            }
            Err(refusal) => self.channel.send(&modern::refuse(Some(&request.id), &refusal).message),
        }
    }

    fn begin_modern(&mut self, begun: modern::Begun, cx: &mut Context<'_>) {
        match begun {
            modern::Begun::Answer(answer) => self.channel.send(&answer.message),
            modern::Begun::Listen(listen) => {
                self.listen(*listen);
                // Its changes are first looked at in the next turn.
                cx.waker().wake_by_ref();
            }
            modern::Begun::Resume(id, future) => {
                self.modern.insert(id.clone(), Cancellable::Resuming);
                self.carried.push(Carried::Resuming(id, future));
            }
            modern::Begun::Call(mut call) => {
                match call.poll_event(cx) {
                    Poll::Ready(Event::Message(message)) => self.channel.send(&message),
                    Poll::Ready(Event::Answer(answer)) => return self.channel.send(&answer.message),
                    Poll::Ready(Event::Nothing) => return,
                    Poll::Ready(Event::Release(_)) | Poll::Pending => {}
                }
                if let Some(shared) = call.shared() {
                    self.modern.insert(call.id().clone(), Cancellable::Running(shared));
                }
                self.carried.push(Carried::Modern(call));
            }
        }
    }

    fn listen(&mut self, listen: Listen) {
        // Whoever waits for answers that were read before the end is not told of changes any more.
        if self.is_ending() {
            return self.close_listen(&listen);
        }
        if self.listens.len() >= MOST_LISTENS {
            self.channel.send(&modern::refuse(Some(listen.id()), &Refusal::TOO_MANY).message);
            return;
        }
        self.channel.send(&listen.acknowledgement());
        self.listens.insert(listen.id().clone(), listen);
    }

    fn begin_legacy(&mut self, begun: legacy::Begun, cx: &mut Context<'_>) {
        match begun {
            legacy::Begun::Accepted => {}
            legacy::Begun::Answer(answer) => self.channel.send(&answer.message),
            legacy::Begun::Exchange(mut exchange) => {
                match exchange.poll_event(cx) {
                    Poll::Ready(Event::Message(message)) => self.channel.send(&message),
                    Poll::Ready(Event::Answer(answer)) => return self.channel.send(&answer.message),
                    Poll::Ready(Event::Nothing) => return,
                    Poll::Ready(Event::Release(_)) | Poll::Pending => {}
                }
                self.carried.push(Carried::Legacy(exchange));
            }
        }
    }

    fn send_error(&mut self, id: Option<&Id>, refusal: &Refusal) {
        process::refused(refusal);
        let revision = self.revision().unwrap_or(Revision::NEWEST_LEGACY);
        self.channel.send(&emit::error(id, refusal, revision));
    }
}

impl<C: Channel> Future for ChannelServer<C> {
    /// How many calls it left unanswered.
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            this.poll_drain(cx);
            // What waits may keep some of the below from being looked at; once it is written, they are.
            let skipped = this.channel.queued() >= this.core.limits.queued_bytes / 2;
            let mut moved = this.take_events(cx);
            moved |= this.take_changes(cx);
            moved |= this.take_messages(cx)?;
            this.count_unreceived(cx)?;
            this.refuse_overdue(cx)?;
            let flushed = this.channel.poll_flush(cx)?.is_ready();
            this.count_unread(cx)?;
            if let Poll::Ready(unanswered) = this.poll_over(flushed, cx) {
                return Poll::Ready(Ok(unanswered));
            }
            if !flushed || !(moved || skipped) {
                return Poll::Pending;
            }
        }
    }
}

impl<C> Drop for ChannelServer<C> {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.end();
        }
    }
}
