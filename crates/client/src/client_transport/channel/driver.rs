use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Sleep;
use trunkline_protocol::envelope::{self, MalformedMessage, MessageLimits, MessageOrBatch};
use trunkline_protocol::meta::{PROGRESS_TOKEN, SUBSCRIPTION_ID};
use trunkline_protocol::{
    Message, Method, Notification, RawJson, Refusal, Request, RequestId, Response, Revision, emit, era,
};
use trunkline_transport::process::ExitReport;
use trunkline_transport::{Channel, ReceiveError};

use super::request_table::{RequestEntry, RequestTable};
use super::{ChannelLimits, ChannelShared, DriverCommand};
use crate::client_transport::{
    DeliveryStatus, ExchangeEvent, ServerRequest, TransportFailure, TransportFailureKind, UnsolicitedSender,
};

/// Messages taken from the peer in one turn before our own are written.
const MAX_MESSAGES_PER_POLL: usize = 256;

/// How many times the bytes that requests may queue a peer may make us queue by what it asks.
const RESPONSE_QUEUE_FACTOR: usize = 2;

/// What we wrote ourselves may be as deep as whoever called wanted it to be.
const OUTGOING_BOUNDS: MessageLimits = MessageLimits { depth: usize::MAX, batch: 1 };

/// The question that a server may ask without a call.
const ROOTS_LIST: &str = "roots/list";

/// How long a peer that does not read is waited for at the end.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Drives one channel until it, or whoever calls over it, is gone.
pub(super) struct ChannelDriver<C> {
    channel: C,
    shared: Arc<ChannelShared>,
    unsolicited: UnsolicitedSender,
    limits: ChannelLimits,
    table: RequestTable,
    /// What was taken from the outbox and not yet carried out, in reverse, since the oldest goes first.
    commands: Vec<DriverCommand>,
    malformed_count: usize,
    /// Whether the others had their turn, so that what they ask is here by now.
    has_yielded: bool,
    flush_deadline: Option<Pin<Box<Sleep>>>,
}

impl<C> Unpin for ChannelDriver<C> {}

impl<C: Channel> ChannelDriver<C> {
    pub(super) fn new(
        channel: C,
        shared: Arc<ChannelShared>,
        aside: UnsolicitedSender,
        limits: ChannelLimits,
    ) -> Self {
        let (table, commands) = (RequestTable::default(), Vec::new());
        let (noise, has_gathered, last_words) = (0, false, None);
        Self {
            channel,
            shared,
            unsolicited: aside,
            limits,
            table,
            commands,
            malformed_count: noise,
            has_yielded: has_gathered,
            flush_deadline: last_words,
        }
    }

    /// Carries out what it was told, as far as the peer reads; reports whether there was anything.
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

    /// Reports whether so much waits for the peer to read that what it is to be told waits with us.
    fn is_full(&self) -> bool {
        self.channel.queued() >= self.limits.queued_bytes
    }

    fn execute(&mut self, command: DriverCommand) {
        match command {
            // Whoever asked is gone already, and the server has not seen it.
            DriverCommand::Request { slot, .. } if Arc::strong_count(&slot) == 1 => {
                self.shared.request_permits.add_permits(1);
            }
            DriverCommand::Request {
                id,
                body,
                slot,
                recipient: answerer,
                is_cancellable,
                is_subscription: stands,
            } => {
                self.channel.send(&body);
                self.table.insert(
                    id,
                    RequestEntry {
                        slot,
                        recipient: answerer,
                        is_cancellable,
                        is_subscription: stands,
                        open_requests: Vec::new(),
                    },
                );
            }
            DriverCommand::Post { body, sent, answers, .. } => {
                if let Some(question) = answers {
                    self.table.resolve_request(&question);
                }
                self.channel.send(&body);
                // Whoever posted may have stopped waiting.
                let _ = sent.send(());
            }
            DriverCommand::ReturnRequest(question, certain) => self.reroute_request(question, certain),
            DriverCommand::Abandon(id, answerer) => {
                let Some(entry) = self.table.abandon(id) else {
                    // It was answered, or never sent, before the driver heard that it was given up.
                    return self.shared.uncount_abandoned(answerer);
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

    /// Takes the messages that are here. The end of the peer is an error, with the sentence that says how it came.
    fn take_messages(&mut self, cx: &mut Context<'_>) -> Result<(), String> {
        let mut taken = 0;
        while taken < MAX_MESSAGES_PER_POLL {
            let Poll::Ready(received) = self.channel.poll_receive(cx) else { break };
            taken += 1;
            match received {
                Some(Ok(message)) => self.receive(message)?,
                Some(Err(ReceiveError::TooLong { limit })) => self.skip_oversized(limit),
                Some(Err(ReceiveError::Rejected { message, why })) => self.fail_rejected(message, why),
                // How a program ended needs no introduction.
                Some(Err(ReceiveError::Broken(error)))
                    if error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<ExitReport>) =>
                {
                    return Err(error.to_string());
                }
                Some(Err(other)) => return Err(other.to_string()),
                None => return Err("the server closed the connection".to_owned()),
            }
        }
        if taken == MAX_MESSAGES_PER_POLL {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Nobody knows whose message it was, unless there is only one whose it can be; all others run into their deadlines.
    fn skip_oversized(&mut self, limit: usize) {
        tracing::warn!(limit, "a message of the server is too long and was skipped");
        if let Some((id, _)) = self.table.only_request() {
            let kind = TransportFailureKind::TooLong { limit };
            self.finish(
                id,
                ExchangeEvent::Failed(TransportFailure { delivery: DeliveryStatus::MaybeDelivered, kind }),
            );
        }
    }

    /// A message that the server did not take is the end of the request that it is, and of nothing else.
    fn fail_rejected(&mut self, message: Bytes, why: io::Error) {
        tracing::debug!(%why, "a message was not taken");
        let entry = match envelope::read(message, OUTGOING_BOUNDS) {
            Ok(MessageOrBatch::One(Message::Request(request))) => self.table.take(&request.id),
            _ => None,
        };
        let Some(entry) = entry else { return };
        self.shared.request_permits.add_permits(1);
        let loss = why
            .downcast::<TransportFailure>()
            .unwrap_or_else(|why| TransportFailure::maybe_delivered(why.to_string()));
        entry.slot.finish(ExchangeEvent::Failed(loss));
    }

    fn receive(&mut self, message: Bytes) -> Result<(), String> {
        match envelope::read_from_server(message, self.limits.bounds) {
            Ok(MessageOrBatch::One(message)) => self.receive_one(message),
            Ok(MessageOrBatch::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.receive_one(message),
                        Err(malformed) => self.receive_malformed(&malformed)?,
                    }
                }
            }
            Err(malformed) => self.receive_malformed(&malformed)?,
        }
        Ok(())
    }

    /// Servers print what they should not; a little of that is skipped, endless amounts are the end.
    fn receive_malformed(&mut self, malformed: &MalformedMessage) -> Result<(), String> {
        if let Some(entry) = malformed.id.as_ref().and_then(|id| self.table.take(id)) {
            self.shared.request_permits.add_permits(1);
            let problem = format!("the server's response cannot be read: {}", malformed.refusal);
            entry.slot.finish(ExchangeEvent::Failed(TransportFailure::malformed(problem)));
            return Ok(());
        }
        self.malformed_count += 1;
        tracing::debug!(problem = %malformed.refusal, "skipped what is no message");
        if self.malformed_count > self.limits.malformed_messages {
            return Err(format!(
                "the server sent more than {} things that are no messages",
                self.limits.malformed_messages
            ));
        }
        Ok(())
    }

    fn receive_one(&mut self, message: Message) {
        match message {
            Message::Response(response) => self.receive_response(response),
            Message::Request(request) => self.receive_request(request),
            Message::Notification(notice) => self.receive_notification(notice),
        }
    }

    fn receive_response(&mut self, response: Response) {
        let entry = match &response.id {
            Some(id) => self.table.take(id),
            // An error about something that could not be read must be about the only thing that was sent.
            None => self.table.only_request().map(|(id, _)| id).and_then(|id| self.table.remove(id)),
        };
        match entry {
            Some(entry) => {
                self.shared.request_permits.add_permits(1);
                entry.slot.finish(ExchangeEvent::Response(response.outcome));
            }
            // Late, repeated, or never asked for.
            None => {
                if let Some(answerer) = response.id.as_ref().and_then(|id| self.table.take_abandoned(id)) {
                    self.shared.uncount_abandoned(answerer);
                }
                tracing::debug!(id = ?response.id, "dropped a response that nobody waits for");
            }
        }
    }

    fn receive_request(&mut self, request: Request) {
        if request.method == Method::Ping.as_str() {
            if self.peer_reads() {
                self.channel.send(&emit::result(&request.id, 2, |writer| writer.verbatim("{}")));
            }
            return;
        }
        self.route_request(request);
    }

    /// Gives a question to the request within which it was asked, or to the session if that cannot be known.
    fn route_request(&mut self, request: Request) {
        let id = request.id.clone();
        // Servers ask for roots whenever they like.
        let is_for_anybody = request.method == ROOTS_LIST;
        let taken = match self.table.attribute_request() {
            Some((entry, is_only)) => {
                entry.open_requests.push(id.clone());
                let certain = is_only && !is_for_anybody;
                let asked = ServerRequest::over_channel(request, self.shared.clone(), certain);
                entry.slot.push_request(asked)
            }
            None => self.unsolicited.send_request(request).is_ok(),
        };
        if !taken {
            self.table.resolve_request(&id);
            self.refuse(&id, &Refusal::TOO_MANY);
        }
    }

    /// Finds somebody else to answer a question, unless it went with whoever it was given to.
    fn reroute_request(&mut self, request: Request, certain: bool) {
        self.table.resolve_request(&request.id);
        let has_others = self.table.attribute_request().is_some() || request.method == ROOTS_LIST;
        if certain || !has_others {
            self.refuse(&request.id, &Refusal::INTERNAL.with_message("the call was given up"));
        } else {
            self.route_request(request);
        }
    }

    fn refuse(&mut self, question: &RequestId, refusal: &Refusal) {
        if self.peer_reads() {
            self.channel.send(&emit::error(Some(question), refusal, Revision::NEWEST_LEGACY));
        }
    }

    /// Tells whether the peer takes what it is answered. One that only ever asks is not answered any more at some point.
    fn peer_reads(&self) -> bool {
        self.channel.queued() < RESPONSE_QUEUE_FACTOR * self.limits.queued_bytes
    }

    fn receive_notification(&mut self, notice: Notification) {
        match self.request_of(&notice) {
            Some(entry) => entry.slot.push_notification(notice),
            None => self.unsolicited.send_notification(notice),
        }
    }

    /// Finds the request that a notification belongs to.
    fn request_of(&mut self, notice: &Notification) -> Option<&RequestEntry> {
        if let Some(subscription) = notice.params.meta.as_ref().and_then(|meta| meta.get(SUBSCRIPTION_ID)) {
            return self.table.get(&token(subscription)?);
        }
        match &*notice.method {
            "notifications/progress" => self.table.get(&token(notice.params.get(PROGRESS_TOKEN)?)?),
            // The server ends a standing request of ours, or takes back a question of its own.
            "notifications/cancelled" => {
                let id = era::cancelled_request(notice)?;
                if self.table.contains(&id) { self.table.get(&id) } else { self.table.resolve_request(&id) }
            }
            // One that was given up may still be at work, and it may be about that.
            "notifications/message" if self.shared.has_abandoned() => None,
            "notifications/message" => self.table.only_call(),
            _ => None,
        }
    }

    fn finish(&mut self, id: u64, last: ExchangeEvent) {
        if let Some(entry) = self.table.remove(id) {
            self.shared.request_permits.add_permits(1);
            entry.slot.finish(last);
        }
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, String> {
        loop {
            self.shared.driver.register(cx.waker());
            let (told, was_full) = (self.take_commands(), self.is_full());
            self.take_messages(cx)?;
            if self.defers_write(told && !was_full) {
                // A task that wakes itself goes behind all that are ready. The runtime's own way to yield would let it come
                // before those whom the next events make ready, and gathers less.
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
            let flushed = self.channel.poll_flush(cx).map_err(|error| disconnect_message(&error))?.is_ready();
            if self.shared.closed.load(Ordering::Acquire) && (flushed || self.is_overdue(cx)) {
                return Ok(Poll::Ready(()));
            }
            // Everything else that may come wakes us; what was left behind for want of room does not.
            if !flushed || !was_full {
                return Ok(Poll::Pending);
            }
        }
    }

    /// Reports whether what was told is not written yet, but together with what others are about to tell.
    ///
    /// Where several call at one time, the answers that they wait for come together, and so do their next requests. A call
    /// that is alone never waits, and nothing waits for longer than one turn.
    fn defers_write(&mut self, told: bool) -> bool {
        self.has_yielded = told && !self.has_yielded && self.table.has_several_calls();
        self.has_yielded
    }

    /// Reports whether a peer that does not read has been waited for long enough, once nobody is left who could call.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        let last_words =
            self.flush_deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(FINAL_FLUSH_TIMEOUT)));
        last_words.as_mut().poll(cx).is_ready()
    }

    /// Ends everything that still waits, and everything that will ever be asked.
    fn shut_down(&mut self, how: &str) {
        let mut outbox = self.shared.lock();
        outbox.closed = Some(TransportFailure::not_delivered(how));
        let unsent = std::mem::take(&mut outbox.commands);
        drop(outbox);
        let sent = self.table.fail_all(&TransportFailure::maybe_delivered(how));
        if sent > 0 {
            tracing::debug!(sent, how, "the connection ended with requests in flight");
        }
        for command in self.commands.drain(..).chain(unsent) {
            if let DriverCommand::Request { slot, .. } = command {
                slot.finish(ExchangeEvent::Failed(TransportFailure::not_delivered(how)));
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
                this.shut_down("the connection was closed by the client");
                Poll::Ready(())
            }
            Err(how) => {
                this.shut_down(&how);
                Poll::Ready(())
            }
        }
    }
}

fn token(raw: &RawJson) -> Option<RequestId> {
    RequestId::from_raw(raw.clone())
}

fn disconnect_message(error: &io::Error) -> String {
    format!("the server does not take requests any more: {error}")
}

impl TransportFailure {
    fn malformed(problem: String) -> Self {
        Self { delivery: DeliveryStatus::MaybeDelivered, kind: TransportFailureKind::Malformed(problem) }
    }
}
