use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Sleep;
use trunkline_protocol::envelope::{self, Bounds, Incoming, Malformed};
use trunkline_protocol::meta::{PROGRESS_TOKEN, SUBSCRIPTION_ID};
use trunkline_protocol::{
    Id, Message, Method, Notification, Raw, Refusal, Request, Response, Revision, emit, era,
};
use trunkline_transport::process::Ended;
use trunkline_transport::{Channel, ReceiveError};

use super::table::{Entry, Table};
use super::{ChannelLimits, Command, Shared};
use crate::carrier::{Arrived, Aside, Asked, Loss, LossKind, Reach};

/// Messages taken from the peer in one turn before our own are written.
const MOST_PER_TURN: usize = 256;

/// How many times the bytes that requests may queue a peer may make us queue by what it asks.
const ANSWERS_OVER_REQUESTS: usize = 2;

/// What we wrote ourselves may be as deep as whoever called wanted it to be.
const OURS: Bounds = Bounds { depth: usize::MAX, batch: 1 };

/// The question that a server may ask without a call.
const ROOTS: &str = "roots/list";

/// How long a peer that does not read is waited for at the end.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// Drives one channel until it, or whoever calls over it, is gone.
pub(super) struct Driver<C> {
    channel: C,
    shared: Arc<Shared>,
    aside: Aside,
    limits: ChannelLimits,
    table: Table,
    /// What was taken from the outbox and not yet carried out, in reverse, since the oldest goes first.
    commands: Vec<Command>,
    noise: usize,
    /// Whether the others had their turn, so that what they ask is here by now.
    has_gathered: bool,
    last_words: Option<Pin<Box<Sleep>>>,
}

impl<C> Unpin for Driver<C> {}

impl<C: Channel> Driver<C> {
    pub(super) fn new(channel: C, shared: Arc<Shared>, aside: Aside, limits: ChannelLimits) -> Self {
        let (table, commands) = (Table::default(), Vec::new());
        let (noise, has_gathered, last_words) = (0, false, None);
        Self { channel, shared, aside, limits, table, commands, noise, has_gathered, last_words }
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
            self.carry_out(command);
        }
        any
    }

    /// Reports whether so much waits for the peer to read that what it is to be told waits with us.
    fn is_full(&self) -> bool {
        self.channel.queued() >= self.limits.queued_bytes
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            // Whoever asked is gone already, and the server has not seen it.
            Command::Request { slot, .. } if Arc::strong_count(&slot) == 1 => {
                self.shared.places.add_permits(1);
            }
            Command::Request { id, body, slot, answerer, is_cancellable, stands } => {
                self.channel.send(&body);
                self.table.insert(id, Entry { slot, answerer, is_cancellable, stands, open: Vec::new() });
            }
            Command::Post { body, sent, answers, .. } => {
                if let Some(question) = answers {
                    self.table.settle(&question);
                }
                self.channel.send(&body);
                // Whoever posted may have stopped waiting.
                let _ = sent.send(());
            }
            Command::GiveBack(question, certain) => self.attribute_again(question, certain),
            Command::Abandon(id, answerer) => {
                let Some(entry) = self.table.abandon(id) else {
                    // It was answered, or never sent, before the driver heard that it was given up.
                    return self.shared.settle_abandoned(answerer);
                };
                self.shared.places.add_permits(1);
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
        while taken < MOST_PER_TURN {
            let Poll::Ready(received) = self.channel.poll_receive(cx) else { break };
            taken += 1;
            match received {
                Some(Ok(message)) => self.receive(message)?,
                Some(Err(ReceiveError::TooLong { limit })) => self.skip_too_long(limit),
                Some(Err(ReceiveError::Untaken { message, why })) => self.lose_untaken(message, why),
                // How a program ended needs no introduction.
                Some(Err(ReceiveError::Broken(error)))
                    if error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<Ended>) =>
                {
                    return Err(error.to_string());
                }
                Some(Err(other)) => return Err(other.to_string()),
                None => return Err("the server closed the connection".to_owned()),
            }
        }
        if taken == MOST_PER_TURN {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Nobody knows whose message it was, unless there is only one whose it can be; all others run into their deadlines.
    fn skip_too_long(&mut self, limit: usize) {
        tracing::warn!(limit, "a message of the server is too long and was skipped");
        if let Some((id, _)) = self.table.only() {
            let kind = LossKind::TooLong { limit };
            self.finish(id, Arrived::Lost(Loss { reach: Reach::MayHaveReached, kind }));
        }
    }

    /// A message that the server did not take is the end of the request that it is, and of nothing else.
    fn lose_untaken(&mut self, message: Bytes, why: io::Error) {
        tracing::debug!(%why, "a message was not taken");
        let entry = match envelope::read(message, OURS) {
            Ok(Incoming::One(Message::Request(request))) => self.table.take(&request.id),
            _ => None,
        };
        let Some(entry) = entry else { return };
        self.shared.places.add_permits(1);
        let loss = why.downcast::<Loss>().unwrap_or_else(|why| Loss::may_have_reached(why.to_string()));
        entry.slot.finish(Arrived::Lost(loss));
    }

    fn receive(&mut self, message: Bytes) -> Result<(), String> {
        match envelope::read_from_server(message, self.limits.bounds) {
            Ok(Incoming::One(message)) => self.receive_one(message),
            Ok(Incoming::Batch(messages)) => {
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
    fn receive_malformed(&mut self, malformed: &Malformed) -> Result<(), String> {
        if let Some(entry) = malformed.id.as_ref().and_then(|id| self.table.take(id)) {
            self.shared.places.add_permits(1);
            let problem = format!("the server's response cannot be read: {}", malformed.refusal);
            entry.slot.finish(Arrived::Lost(Loss::malformed(problem)));
            return Ok(());
        }
        self.noise += 1;
        tracing::debug!(problem = %malformed.refusal, "skipped what is no message");
        if self.noise > self.limits.noise {
            return Err(format!(
                "the server sent more than {} things that are no messages",
                self.limits.noise
            ));
        }
        Ok(())
    }

    fn receive_one(&mut self, message: Message) {
        match message {
            Message::Response(response) => self.receive_response(response),
            Message::Request(request) => self.receive_request(request),
            Message::Notification(notice) => self.receive_notice(notice),
        }
    }

    fn receive_response(&mut self, response: Response) {
        let entry = match &response.id {
            Some(id) => self.table.take(id),
            // An error about something that could not be read must be about the only thing that was sent.
            None => self.table.only().map(|(id, _)| id).and_then(|id| self.table.remove(id)),
        };
        match entry {
            Some(entry) => {
                self.shared.places.add_permits(1);
                entry.slot.finish(Arrived::Response(response.outcome));
            }
            // Late, repeated, or never asked for.
            None => {
                if let Some(answerer) = response.id.as_ref().and_then(|id| self.table.take_abandoned(id)) {
                    self.shared.settle_abandoned(answerer);
                }
                tracing::debug!(id = ?response.id, "dropped a response that nobody waits for");
            }
        }
    }

    fn receive_request(&mut self, request: Request) {
        if request.method == Method::Ping.as_str() {
            if self.reads() {
                self.channel.send(&emit::result(&request.id, 2, |writer| writer.verbatim("{}")));
            }
            return;
        }
        self.attribute(request);
    }

    /// Gives a question to the request within which it was asked, or to the session if that cannot be known.
    fn attribute(&mut self, request: Request) {
        let id = request.id.clone();
        // Servers ask for roots whenever they like.
        let is_for_anybody = request.method == ROOTS;
        let taken = match self.table.asking() {
            Some((entry, is_only)) => {
                entry.open.push(id.clone());
                let certain = is_only && !is_for_anybody;
                let asked = Asked::over_channel(request, self.shared.clone(), certain);
                entry.slot.question(asked)
            }
            None => self.aside.question(request).is_ok(),
        };
        if !taken {
            self.table.settle(&id);
            self.refuse(&id, &Refusal::TOO_MANY);
        }
    }

    /// Finds somebody else to answer a question, unless it went with whoever it was given to.
    fn attribute_again(&mut self, request: Request, certain: bool) {
        self.table.settle(&request.id);
        let has_others = self.table.asking().is_some() || request.method == ROOTS;
        if certain || !has_others {
            self.refuse(&request.id, &Refusal::INTERNAL.because("the call was given up"));
        } else {
            self.attribute(request);
        }
    }

    fn refuse(&mut self, question: &Id, refusal: &Refusal) {
        if self.reads() {
            self.channel.send(&emit::error(Some(question), refusal, Revision::NEWEST_LEGACY));
        }
    }

    /// Tells whether the peer takes what it is answered. One that only ever asks is not answered any more at some point.
    fn reads(&self) -> bool {
        self.channel.queued() < ANSWERS_OVER_REQUESTS * self.limits.queued_bytes
    }

    fn receive_notice(&mut self, notice: Notification) {
        match self.belongs_to(&notice) {
            Some(entry) => entry.slot.notice(notice),
            None => self.aside.notice(notice),
        }
    }

    /// Finds the request that a notification belongs to.
    fn belongs_to(&mut self, notice: &Notification) -> Option<&Entry> {
        if let Some(subscription) = notice.params.meta.as_ref().and_then(|meta| meta.get(SUBSCRIPTION_ID)) {
            return self.table.named(&token(subscription)?);
        }
        match &*notice.method {
            "notifications/progress" => self.table.named(&token(notice.params.get(PROGRESS_TOKEN)?)?),
            // The server ends a standing request of ours, or takes back a question of its own.
            "notifications/cancelled" => {
                let id = era::cancelled_request(notice)?;
                if self.table.has(&id) { self.table.named(&id) } else { self.table.settle(&id) }
            }
            // One that was given up may still be at work, and it may be about that.
            "notifications/message" if self.shared.has_abandoned() => None,
            "notifications/message" => self.table.only_call(),
            _ => None,
        }
    }

    fn finish(&mut self, id: u64, last: Arrived) {
        if let Some(entry) = self.table.remove(id) {
            self.shared.places.add_permits(1);
            entry.slot.finish(last);
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, String> {
        loop {
            self.shared.driver.register(cx.waker());
            let (told, was_full) = (self.take_commands(), self.is_full());
            self.take_messages(cx)?;
            if self.gathers(told && !was_full) {
                // A task that wakes itself goes behind all that are ready. The runtime's own way to yield would let it come
                // before those whom the next events make ready, and gathers less.
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
            let flushed = self.channel.poll_flush(cx).map_err(|error| cut_off(&error))?.is_ready();
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
    fn gathers(&mut self, told: bool) -> bool {
        self.has_gathered = told && !self.has_gathered && self.table.has_several_calls();
        self.has_gathered
    }

    /// Reports whether a peer that does not read has been waited for long enough, once nobody is left who could call.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        let last_words =
            self.last_words.get_or_insert_with(|| Box::pin(tokio::time::sleep(LAST_WORDS_WITHIN)));
        last_words.as_mut().poll(cx).is_ready()
    }

    /// Ends everything that still waits, and everything that will ever be asked.
    fn end(&mut self, how: &str) {
        let mut outbox = self.shared.lock();
        outbox.gone = Some(Loss::not_reached(how));
        let unsent = std::mem::take(&mut outbox.commands);
        drop(outbox);
        let sent = self.table.lose(&Loss::may_have_reached(how));
        if sent > 0 {
            tracing::debug!(sent, how, "the connection ended with requests in flight");
        }
        for command in self.commands.drain(..).chain(unsent) {
            if let Command::Request { slot, .. } = command {
                slot.finish(Arrived::Lost(Loss::not_reached(how)));
            }
        }
        self.shared.places.close();
        self.shared.posts.close();
        self.aside.closed();
    }
}

impl<C: Channel> Future for Driver<C> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        match this.turn(cx) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                this.end("the connection was closed by the client");
                Poll::Ready(())
            }
            Err(how) => {
                this.end(&how);
                Poll::Ready(())
            }
        }
    }
}

fn token(raw: &Raw) -> Option<Id> {
    Id::from_raw(raw.clone())
}

fn cut_off(error: &io::Error) -> String {
    format!("the server does not take requests any more: {error}")
}

impl Loss {
    fn malformed(problem: String) -> Self {
        Self { reach: Reach::MayHaveReached, kind: LossKind::Malformed(problem) }
    }
}
