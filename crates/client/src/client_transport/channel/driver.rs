mod illegible;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Sleep;
use trunkline_protocol::envelope::{self, MessageOrBatch};
use trunkline_protocol::meta::{PROGRESS_TOKEN, SUBSCRIPTION_ID};
use trunkline_protocol::{
    Message, Method, Notification, RawJson, Refusal, Request, RequestId, Response, Revision, emit, era,
};
use trunkline_transport::{Channel, ReceiveError};

use super::request_table::{RequestEntry, RequestTable};
use super::{ChannelLimits, ChannelShared, DriverCommand};
use crate::client_transport::flood_guard::FloodGuard;
use crate::client_transport::{
    ExchangeEvent, FailureCause, ServerRequest, TransportFailure, UnsolicitedSender,
};
use crate::dropped_message::DroppedMessage;
use crate::message_budget::BudgetShare;

/// Messages read from the peer in one poll before our own are written.
const MAX_MESSAGES_PER_POLL: usize = 256;

/// The queue limit for responses to the peer's own requests, as a multiple of `queued_bytes`.
const RESPONSE_QUEUE_FACTOR: usize = 2;

/// The request that a server may send outside of any call.
const ROOTS_LIST: &str = "roots/list";

/// How long closing waits for a peer that does not read.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Drives one channel until the channel or its transport is closed.
pub(super) struct ChannelDriver<C> {
    channel: C,
    shared: Arc<ChannelShared>,
    unsolicited: UnsolicitedSender,
    limits: ChannelLimits,
    table: RequestTable,
    /// Commands taken from the queue and not yet executed, in reverse: the oldest is last.
    commands: Vec<DriverCommand>,
    malformed_count: usize,
    /// The limit that the last message exceeded, until the channel waits for the next one: a WebSocket ends with it.
    oversized: Option<usize>,
    flood: FloodGuard,
    /// The share of the memory for messages that are being received.
    memory: BudgetShare,
    /// Whether the driver has yielded once, so that the requests of other ready tasks are queued by now.
    has_yielded: bool,
    flush_deadline: Option<Pin<Box<Sleep>>>,
}

impl<C> Unpin for ChannelDriver<C> {}

impl<C: Channel> ChannelDriver<C> {
    pub(super) fn new(
        channel: C,
        shared: Arc<ChannelShared>,
        unsolicited: UnsolicitedSender,
        limits: ChannelLimits,
    ) -> Self {
        let (table, commands) = (RequestTable::default(), Vec::new());
        let memory = limits.message_memory.share();
        let (malformed_count, has_yielded, flush_deadline) = (0, false, None);
        Self {
            channel,
            shared,
            unsolicited,
            limits,
            table,
            commands,
            malformed_count,
            oversized: None,
            flood: FloodGuard::default(),
            memory,
            has_yielded,
            flush_deadline,
        }
    }

    /// Executes queued commands until the write queue is full; reports whether there were any.
    fn take_commands(&mut self) -> bool {
        let mut any = false;
        while !self.is_full() {
            if self.commands.is_empty() {
                std::mem::swap(&mut self.commands, &mut self.shared.lock().commands);
                self.commands.reverse();
            }
            let Some(command) = self.commands.pop() else { break };
            any = true;
            self.execute(command);
        }
        any
    }

    /// Reports whether the write queue is full, so that commands stay in the command queue.
    fn is_full(&self) -> bool {
        self.channel.queued() >= self.limits.queued_bytes
    }

    fn execute(&mut self, command: DriverCommand) {
        match command {
            // The caller dropped the request before it was sent.
            DriverCommand::Request { slot, .. } if Arc::strong_count(&slot) == 1 => {
                self.shared.request_permits.add_permits(1);
            }
            DriverCommand::Request { id, body, slot, recipient, is_cancellable, is_subscription } => {
                self.channel.send(&body);
                self.table.insert(
                    id,
                    RequestEntry {
                        slot,
                        recipient,
                        is_cancellable,
                        is_subscription,
                        open_requests: Vec::new(),
                    },
                );
            }
            DriverCommand::Post { body, sent, answers, .. } => {
                if let Some(request_id) = answers {
                    self.table.resolve_request(&request_id);
                }
                self.channel.send(&body);
                // The sender may have stopped waiting.
                let _ = sent.send(());
            }
            DriverCommand::ReturnRequest(request, certain) => self.reroute_request(request, certain),
            DriverCommand::Abandon(id, recipient) => {
                let Some(entry) = self.table.abandon(id) else {
                    // It was answered, or never sent, before this command was executed.
                    return self.shared.uncount_abandoned(recipient);
                };
                self.shared.request_permits.add_permits(1);
                if entry.is_cancellable {
                    self.channel.send(&emit::notification("notifications/cancelled", |params| {
                        params.open_object();
                        params.plain_key("requestId");
                        params.unsigned(id);
                        params.close_object();
                    }));
                }
            }
        }
    }

    /// Reads the messages that have arrived. The end of the channel is an error, with the reason.
    fn take_messages(&mut self, cx: &mut Context<'_>) -> Result<(), FailureCause> {
        let mut taken = 0;
        while taken < MAX_MESSAGES_PER_POLL {
            if self.flood.is_paused(cx) {
                return Ok(());
            }
            let Poll::Ready(received) = self.channel.poll_receive(cx) else {
                // The channel continues after an oversized message: its end, if it comes later, has another cause.
                self.oversized = None;
                break;
            };
            taken += 1;
            match received {
                Some(Ok(message)) => {
                    self.oversized = None;
                    self.receive(&message)?;
                }
                Some(Err(ReceiveError::TooLong { limit, message })) => self.skip_oversized(limit, &message),
                Some(Err(ReceiveError::Rejected { message, why })) => self.fail_rejected(message, why),
                Some(Err(error)) => return Err(self.break_cause(error)),
                None => return Err(self.end_cause()),
            }
        }
        if taken == MAX_MESSAGES_PER_POLL {
            cx.waker().wake_by_ref();
        }
        self.memory.set(self.channel.unread_bytes()).map_err(|exceeded| {
            self.unsolicited.count_dropped(exceeded.into());
            FailureCause::from_error(exceeded)
        })
    }

    fn receive(&mut self, message: &Bytes) -> Result<(), FailureCause> {
        match envelope::read_from_server(message, self.limits.bounds) {
            Ok(MessageOrBatch::One(message)) => self.receive_one(message),
            Ok(MessageOrBatch::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.receive_one(message),
                        Err(malformed) => self.receive_malformed(&malformed, malformed.id.is_some())?,
                    }
                }
            }
            Err(malformed) => {
                let part = envelope::find_legible_part(message);
                self.receive_malformed(&malformed, part.is_some_and(|part| !part.has_foreign_id))?;
            }
        }
        Ok(())
    }

    fn receive_one(&mut self, message: Message) {
        match message {
            Message::Response(response) => self.receive_response(response),
            Message::Request(request) => {
                self.count_unrequested();
                self.receive_request(request);
            }
            Message::Notification(notification) => {
                self.count_unrequested();
                self.receive_notification(notification);
            }
        }
    }

    /// Counts a message that answers none of our requests.
    fn count_unrequested(&mut self) {
        if self.flood.count() {
            self.unsolicited.count_dropped(DroppedMessage::Paused);
        }
    }

    fn receive_response(&mut self, response: Response) {
        let entry = match &response.id {
            Some(id) => self.table.take(id),
            // An error without an id can only be attributed if one request is in flight.
            None => self.table.only_request().map(|(id, _)| id).and_then(|id| self.table.remove(id)),
        };
        match entry {
            Some(entry) => {
                self.shared.request_permits.add_permits(1);
                entry.slot.finish(ExchangeEvent::Response(response.outcome));
            }
            // Late, repeated, or never requested.
            None => {
                self.count_unrequested();
                if let Some(recipient) = response.id.as_ref().and_then(|id| self.table.take_abandoned(id)) {
                    self.shared.uncount_abandoned(recipient);
                }
                self.unsolicited.count_dropped(DroppedMessage::Unmatched);
                tracing::debug!(id = ?response.id, "dropped a response without a pending request");
            }
        }
    }

    fn receive_request(&mut self, request: Request) {
        if request.method != Method::Ping.as_str() {
            self.route_request(request);
        } else if self.peer_reads() {
            self.channel.send(&emit::result(&request.id, 2, |writer| writer.verbatim("{}")));
        } else {
            self.unsolicited.count_dropped(DroppedMessage::Answer);
        }
    }

    /// Routes an input request to the call that caused it, or to the session if that is not known.
    fn route_request(&mut self, request: Request) {
        let id = request.id.clone();
        // Servers may request the roots at any time.
        let is_for_session = request.method == ROOTS_LIST;
        let taken = match self.table.attribute_request() {
            Some((entry, is_only)) => {
                entry.open_requests.push(id.clone());
                let certain = is_only && !is_for_session;
                let server_request = ServerRequest::over_channel(request, self.shared.clone(), certain);
                let is_queued = entry.slot.push_request(server_request);
                if !is_queued {
                    self.unsolicited.count_dropped(DroppedMessage::Request);
                }
                is_queued
            }
            None => self.unsolicited.send_request(request).is_ok(),
        };
        if !taken {
            self.table.resolve_request(&id);
            self.refuse(&id, &Refusal::TOO_MANY);
        }
    }

    /// Routes an input request again after its recipient dropped it; refuses it if it certainly belonged to that
    /// recipient.
    fn reroute_request(&mut self, request: Request, certain: bool) {
        self.table.resolve_request(&request.id);
        let has_others = self.table.attribute_request().is_some() || request.method == ROOTS_LIST;
        if certain || !has_others {
            self.refuse(&request.id, &Refusal::INTERNAL.with_message("the call was given up"));
        } else {
            self.route_request(request);
        }
    }

    fn refuse(&mut self, request_id: &RequestId, refusal: &Refusal) {
        if self.peer_reads() {
            self.channel.send(&emit::error(Some(request_id), refusal, Revision::NEWEST_LEGACY));
        } else {
            self.unsolicited.count_dropped(DroppedMessage::Answer);
        }
    }

    /// Reports whether the peer reads our responses. A peer that only sends requests gets no more responses beyond
    /// this limit.
    fn peer_reads(&self) -> bool {
        self.channel.queued() < RESPONSE_QUEUE_FACTOR * self.limits.queued_bytes
    }

    fn receive_notification(&mut self, notification: Notification) {
        let dropped = match self.request_of(&notification) {
            Some(entry) => entry.slot.push_notification(notification),
            None => return self.unsolicited.send_notification(notification),
        };
        (0..dropped).for_each(|_| self.unsolicited.count_dropped(DroppedMessage::Notification));
    }

    /// Finds the request that a notification belongs to.
    fn request_of(&mut self, notification: &Notification) -> Option<&RequestEntry> {
        if let Some(subscription) =
            notification.params.meta.as_ref().and_then(|meta| meta.get(SUBSCRIPTION_ID))
        {
            return self.table.get(&token(subscription)?);
        }
        match &*notification.method {
            "notifications/progress" => self.table.get(&token(notification.params.get(PROGRESS_TOKEN)?)?),
            // The server ends a subscription of ours, or cancels an input request of its own.
            "notifications/cancelled" => {
                let id = era::cancelled_request(notification)?;
                if self.table.contains(&id) { self.table.get(&id) } else { self.table.resolve_request(&id) }
            }
            // An abandoned call may still be running, and the message may belong to it.
            "notifications/message" if self.shared.has_abandoned() => None,
            "notifications/message" => self.table.only_call(),
            _ => None,
        }
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, FailureCause> {
        loop {
            self.shared.driver.register(cx.waker());
            let (has_commands, was_full) = (self.take_commands(), self.is_full());
            self.take_messages(cx)?;
            if self.defers_write(has_commands && !was_full) {
                // A task that wakes itself is queued behind all ready tasks. `yield_now` would let it run before
                // tasks that the next I/O events make ready, and so batch fewer requests.
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
            let flushed = self.channel.poll_flush(cx).map_err(disconnect_cause)?.is_ready();
            if self.shared.closed.load(Ordering::Acquire) && (flushed || self.is_overdue(cx)) {
                return Ok(Poll::Ready(()));
            }
            // Every other event wakes the driver; only commands left behind by a full write queue need another
            // iteration.
            if !flushed || !was_full {
                return Ok(Poll::Pending);
            }
        }
    }

    /// Reports whether to delay the write by one poll, to batch it with the requests of other callers.
    ///
    /// With concurrent calls, their responses arrive together, and so do their next requests. A single call is
    /// never delayed, and no write is delayed for more than one poll.
    fn defers_write(&mut self, has_commands: bool) -> bool {
        self.has_yielded = has_commands && !self.has_yielded && self.table.has_several_calls();
        self.has_yielded
    }

    /// Reports whether the final flush has timed out, after the transport was closed.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        let flush_deadline =
            self.flush_deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(FINAL_FLUSH_TIMEOUT)));
        flush_deadline.as_mut().poll(cx).is_ready()
    }

    /// Fails all pending requests, and all later ones.
    fn shut_down(&mut self, cause: &FailureCause) {
        let mut outbox = self.shared.lock();
        outbox.closed = Some(TransportFailure::not_sent(cause.clone()));
        let unsent = std::mem::take(&mut outbox.commands);
        drop(outbox);
        let failure = match self.oversized {
            Some(limit) => TransportFailure::too_long(limit),
            None => TransportFailure::maybe_sent(cause.clone()),
        };
        let sent = self.table.fail_all(&failure);
        if sent > 0 {
            tracing::debug!(sent, how = cause.message, "the connection ended with requests in flight");
        }
        for command in self.commands.drain(..).chain(unsent) {
            if let DriverCommand::Request { slot, .. } = command {
                slot.finish(ExchangeEvent::Failed(TransportFailure::not_sent(cause.clone())));
            }
        }
        self.shared.request_permits.close();
        self.shared.post_permits.close();
        self.unsolicited.send_closed();
    }
}

impl<C: Channel> Future for ChannelDriver<C> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        match this.poll_once(cx) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                this.shut_down(&"the connection was closed by the client".into());
                Poll::Ready(())
            }
            Err(cause) => {
                this.shut_down(&cause);
                Poll::Ready(())
            }
        }
    }
}

fn token(raw: &RawJson) -> Option<RequestId> {
    RequestId::from_raw(raw.clone())
}

fn disconnect_cause(error: io::Error) -> FailureCause {
    let message = format!("the server does not take requests any more: {error}");
    FailureCause { message, source: Some(error.into()) }
}
