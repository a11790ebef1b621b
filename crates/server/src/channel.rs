//! Serving over a channel: both eras on one pipe, driven by one task.
//!
//! Every turn takes the events of the calls, then every message that has already arrived, then writes once. A call
//! is polled in place when it arrives, so that one which is ready at once costs neither a task nor a wake-up.
//!
//! # Invariants
//!
//! - A message that exceeds the memory or the time for large requests closes its channel:
//!   `channel_closes_on_a_partial_message_over_budget_or_past_its_deadline`.

mod activity;
mod backpressure;
mod channel_call;
mod channel_sessions;
mod embedding;
mod ending;
mod partial_message;
mod session;
mod start_deadline;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SelectAll, Stream as _};
use tokio::sync::futures::OwnedNotified;
use tracing::Span;
use trunkline_protocol::envelope::{self, MalformedMessage, MessageOrBatch};
use trunkline_protocol::era::{self, MessageRoute};
use trunkline_protocol::{Message, Refusal, Request, RequestId, Revision, emit};
use trunkline_session::{Principal, SessionId};
use trunkline_transport::{Channel, ReceiveError};

pub(crate) use self::activity::ChannelActivity;
use self::backpressure::{QueuedCalls, is_call};
use self::channel_call::{ChannelCall, ChannelCallEvent, ModernCallStatus};
pub(crate) use self::channel_sessions::ChannelSessions;
use self::channel_sessions::ListedSession;
use self::ending::ChannelDeadline;
use self::partial_message::PartialMessage;
use self::start_deadline::StartDeadline;
use crate::access_grant::AccessGrant;
use crate::admission::BytePermit;
use crate::admission::PeerBacklog;
use crate::change::ChangeSubscription;
use crate::edge::legacy::{self, LiveSession, SessionTransport};
use crate::edge::modern::{self, RequestOrigin, SubscriptionStream};
use crate::edge::{CallEvent, MessageStart, id_in_use};
use crate::env::Env;
use crate::message_tracing::{log_sent, message_span};
use crate::metrics::process;
use crate::server_core::ServerCore;

/// Messages taken from the peer, and from calls, in one turn before the other work runs.
const MAX_PER_TURN: usize = 256;

/// The most change subscriptions on one channel.
const MAX_SUBSCRIPTIONS: usize = 16;

/// A backlog below this is not counted against the write budget: nearly always it is written in the next turn.
const UNCOUNTED_BACKLOG: usize = 8 * 1024;

/// Serves one channel until its peer disconnects, or the server shuts down.
pub(crate) struct ChannelServer<C> {
    core: Arc<ServerCore>,
    principal: Principal,
    /// Distinguishes its client from others without a session.
    id: SessionId,
    /// The address of the peer, if the channel is over a network.
    remote_address: Option<IpAddr>,
    env: Env,
    /// What the credential of the client grants.
    grant: Option<Arc<AccessGrant>>,
    channel: C,
    session: Option<Arc<LiveSession>>,
    /// The session in the list for operators.
    listed: Option<ListedSession>,
    /// What operators see as its transport.
    transport_kind: SessionTransport,
    /// The id under which the client's state is kept between calls, if it is not the session's.
    state_id: Option<SessionId>,
    subscription: Option<Arc<ChangeSubscription>>,
    calls: SelectAll<ChannelCall>,
    /// Modern calls that can be cancelled, by their id.
    modern_calls: HashMap<RequestId, ModernCallStatus>,
    subscriptions: HashMap<RequestId, SubscriptionStream>,
    /// Calls that were read while the most allowed were running.
    queued_calls: QueuedCalls,
    partial_message: Option<PartialMessage>,
    draining: Pin<Box<OwnedNotified>>,
    stopping: Pin<Box<OwnedNotified>>,
    drained: bool,
    /// Whether the owner of the channel ends it when the server stops, and counts its unanswered calls.
    is_owned: bool,
    /// What the peer has not read; `None` if the owner of the channel counts that.
    backlog: Option<PeerBacklog>,
    /// How long calls may take once the channel ends; `None` is `ServerLimits::drain_timeout`.
    grace: Option<Duration>,
    ended: bool,
    start_deadline: StartDeadline,
    /// How it is used, if its owner wants to know.
    activity: Option<Arc<ChannelActivity>>,
    deadline: ChannelDeadline,
    /// Calls that were refused at the deadline.
    refused_calls: usize,
}

impl<C> Unpin for ChannelServer<C> {}

impl<C: Channel> ChannelServer<C> {
    pub(crate) fn new(core: Arc<ServerCore>, principal: Principal, channel: C) -> Self {
        let draining = Box::pin(core.shutdown.watch_draining());
        let stopping = Box::pin(core.shutdown.watch_stopping());
        let unread = Some(core.write_budget.backlog());
        // The peer of our pipes has started this process, or was started by it, in the same environment.
        let env = if principal == Principal::Process { core.env.process() } else { Env::default() };
        Self {
            core,
            principal,
            id: SessionId::random(),
            remote_address: None,
            env,
            grant: None,
            channel,
            session: None,
            listed: None,
            transport_kind: SessionTransport::Channel,
            state_id: None,
            subscription: None,
            calls: SelectAll::new(),
            modern_calls: HashMap::new(),
            subscriptions: HashMap::new(),
            queued_calls: QueuedCalls::default(),
            partial_message: None,
            draining,
            stopping,
            drained: false,
            is_owned: false,
            backlog: unread,
            grace: None,
            ended: false,
            start_deadline: None,
            activity: None,
            deadline: ChannelDeadline::default(),
            refused_calls: 0,
        }
    }

    /// Takes the events of the calls; reports whether there were any.
    fn take_events(&mut self, cx: &mut Context<'_>) -> bool {
        let mut taken = 0;
        // A call may send notifications without end. Those of one turn fill at most half of the queue, so that the
        // peer's reaction, such as a cancellation, is still read.
        while taken < MAX_PER_TURN && self.channel.queued() < self.core.limits.queued_bytes / 2 {
            let Poll::Ready(Some(event)) = Pin::new(&mut self.calls).poll_next(cx) else { break };
            taken += 1;
            self.handle_event(event, cx);
        }
        taken > 0
    }

    fn handle_event(&mut self, event: ChannelCallEvent, cx: &mut Context<'_>) {
        match event {
            ChannelCallEvent::Call(event, ended) => {
                if let Some(id) = ended {
                    self.modern_calls.remove(&id);
                }
                self.send_event(event);
            }
            ChannelCallEvent::Started(id, start, span) => {
                let was_cancelled =
                    matches!(self.modern_calls.remove(&id), Some(ModernCallStatus::Cancelled));
                match start {
                    MessageStart::Subscription(_) if was_cancelled => return,
                    MessageStart::Call(ref exchange) if was_cancelled => {
                        exchange.modern_state().iter().for_each(|state| state.cancel());
                    }
                    _ => {}
                }
                self.begin(start, span, cx);
            }
        }
    }

    /// Sends the message of an event; reports whether the call continues.
    fn send_event(&mut self, event: CallEvent) -> bool {
        match event {
            CallEvent::Message(message) => self.channel.send(&message),
            CallEvent::ReleaseStream(_) => {}
            CallEvent::Response(answer) => {
                self.channel.send(&answer.message);
                return false;
            }
            CallEvent::NoResponse => return false,
        }
        true
    }

    fn take_changes(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while self.has_room() {
            let message = match &self.subscription {
                Some(watch) => match watch.poll_message(cx) {
                    Poll::Ready(message) => message,
                    Poll::Pending => break,
                },
                None => break,
            };
            any = true;
            if let Some(session) = &self.session {
                self.core.observe_sent(|| session.observed(), &message);
            }
            self.channel.send(&message);
        }
        for listen in self.subscriptions.values() {
            while self.channel.queued() < self.core.limits.queued_bytes {
                let Poll::Ready(message) = listen.poll_message(cx) else { break };
                any = true;
                self.channel.send(&message);
            }
        }
        any
    }

    /// Takes the messages that have arrived; reports whether there were any.
    fn take_messages(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut taken = 0;
        while self.has_room() && !self.is_at_call_limit() && taken < MAX_PER_TURN {
            let Some((held, reserved)) = self.queued_calls.pop() else { break };
            taken += 1;
            self.dispatch(held, reserved, cx);
        }
        // A draining server continues to read: running calls may wait for a response, and new calls are refused.
        while !self.ended && self.has_room() && taken < MAX_PER_TURN {
            let Poll::Ready(received) = self.channel.poll_receive(cx) else { break };
            taken += 1;
            match received {
                Some(Ok(message)) => self.receive(message, cx),
                Some(Err(ReceiveError::TooLong { limit, .. })) => {
                    let refusal =
                        Refusal::TOO_LARGE.with_message(format!("a message may have at most {limit} bytes"));
                    self.send_error(None, &refusal);
                }
                Some(Err(ReceiveError::Broken(error))) => return Err(error),
                Some(Err(other)) => return Err(io::Error::other(other)),
                None => self.end(),
            }
        }
        if taken == MAX_PER_TURN {
            cx.waker().wake_by_ref();
        }
        Ok(taken > 0)
    }

    fn receive(&mut self, message: Bytes, cx: &mut Context<'_>) {
        let bytes = message.len();
        let permit = self.reserve(bytes);
        match envelope::read(message, self.core.limits.bounds) {
            Ok(incoming) => match permit {
                Ok(reserved) if self.must_wait(&incoming) => self.enqueue(incoming, bytes, reserved),
                Ok(reserved) => self.dispatch(incoming, reserved, cx),
                Err(refusal) if is_call(&incoming) => self.refuse_calls(&incoming, &refusal),
                // A response or a cancellation frees memory in the end.
                Err(_) => self.dispatch(incoming, None, cx),
            },
            Err(MalformedMessage { refusal, id }) => self.send_error(id.as_ref(), &refusal),
        }
    }

    fn dispatch(&mut self, incoming: MessageOrBatch, reserved: Option<BytePermit>, cx: &mut Context<'_>) {
        match incoming {
            MessageOrBatch::One(message) => self.receive_one(message, reserved, cx),
            MessageOrBatch::Batch(mut messages) => match self.session.clone() {
                Some(session) => {
                    self.refuse_duplicate_ids(&mut messages);
                    let begun = legacy::begin_batch(&self.core, &session, messages, &self.transport());
                    self.begin(begun.hold_permit(reserved), Span::none(), cx);
                    self.request_roots();
                }
                None => self.send_error(None, &legacy::batch_not_allowed()),
            },
        }
    }

    fn receive_one(&mut self, mut message: Message, reserved: Option<BytePermit>, cx: &mut Context<'_>) {
        let span = message_span(&mut message);
        match (era::route_channel(&message, self.session.is_some()), message) {
            (MessageRoute::Modern, Message::Request(request)) => {
                self.receive_modern(request, reserved, span, cx);
            }
            (MessageRoute::Initialize, Message::Request(request)) => self.initialize(&request),
            (MessageRoute::Refuse(refusal), Message::Request(request)) => {
                self.send_error(Some(&request.id), &refusal);
            }
            (MessageRoute::Session, message) => self.receive_legacy(message, reserved, span, cx),
            _ => {}
        }
    }

    fn receive_modern(
        &mut self,
        request: Request,
        reserved: Option<BytePermit>,
        span: Span,
        cx: &mut Context<'_>,
    ) {
        let is_legacy = |session: &Arc<LiveSession>| session.has_call(&request.id);
        if self.is_modern(&request.id) || self.session.as_ref().is_some_and(is_legacy) {
            self.channel.send(&modern::refuse(Some(&request.id), &id_in_use()).message);
            return;
        }
        match era::validate_request(&request, None, self.core.revisions) {
            Ok(admitted) => {
                self.start_deadline = None;
                let (principal, env) = (self.principal.clone(), self.env.clone());
                let grant = self.grant.clone();
                let (connection, remote_address) = (Some(self.id), self.remote_address);
                let transport = self.transport_kind.name();
                let sender = RequestOrigin { principal, connection, remote_address, transport, env, grant };
                let begun = modern::begin(&self.core, request, admitted, sender);
                self.begin(begun.hold_permit(reserved), span, cx);
            }
            Err(refusal) => self.channel.send(&modern::refuse(Some(&request.id), &refusal).message),
        }
    }

    fn begin(&mut self, start: MessageStart, span: Span, cx: &mut Context<'_>) {
        match start {
            MessageStart::Accepted => {}
            MessageStart::Response(answer) => {
                self.channel.send(&answer.message);
                log_sent(&span);
            }
            MessageStart::Subscription(listen) => {
                self.start_subscription(*listen);
                // Its changes are first polled in the next turn.
                cx.waker().wake_by_ref();
            }
            MessageStart::Deferred(id, future) => {
                self.modern_calls.insert(id.clone(), ModernCallStatus::Resuming);
                self.calls.push(ChannelCall::Deferred(id, future, span));
            }
            MessageStart::Call(mut exchange) => {
                if let Poll::Ready(event) = exchange.poll_event(cx)
                    && !self.send_event(event)
                {
                    log_sent(&span);
                    return;
                }
                if let (Some(id), Some(state)) = (exchange.modern_id(), exchange.modern_state()) {
                    self.modern_calls.insert(id.clone(), ModernCallStatus::Running(state));
                }
                self.calls.push(ChannelCall::Running(exchange, span));
            }
        }
    }

    fn start_subscription(&mut self, listen: SubscriptionStream) {
        // A client that only waits for the responses to requests read before the end gets no more change
        // notifications.
        if self.is_ending() {
            return self.close_subscription(&listen);
        }
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            self.channel.send(&modern::refuse(Some(listen.id()), &Refusal::TOO_MANY).message);
            return;
        }
        self.channel.send(&listen.acknowledgement());
        self.subscriptions.insert(listen.id().clone(), listen);
    }

    fn send_error(&mut self, id: Option<&RequestId>, refusal: &Refusal) {
        process::count_refusal(refusal);
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
            this.check_closing(cx)?;
            // Backpressure may have skipped some of the work below; it runs once the backlog is written.
            let skipped = this.channel.queued() >= this.core.limits.queued_bytes / 2;
            let mut moved = this.take_events(cx);
            moved |= this.take_changes(cx);
            this.poll_roots_request(cx);
            moved |= this.take_messages(cx)?;
            if moved {
                this.record_use();
            }
            this.check_partial_message(cx)?;
            this.check_start(cx)?;
            this.refuse_overdue(cx)?;
            let flushed = this.channel.poll_flush(cx)?.is_ready();
            this.account_backlog(cx)?;
            if let Poll::Ready(unanswered) = this.poll_done(flushed, cx) {
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
