//! Requests over a channel: one task drives it, and everybody else leaves word with that task.
//!
//! Whoever calls puts a written request into the outbox and waits at a slot of its own. The driver takes the whole outbox
//! in one turn, writes once, reads everything that is there and fills the slots; and where several call, it lets them have
//! their turn before it writes. So thirty calls at one time cost one write and one read together, and no caller ever waits
//! for a lock that is held for long.
//!
//! # Invariants
//!
//! - Notifications that are queued for one call are bounded, and the loss is reported:
//!   `a_flood_of_notices_costs_no_more_than_the_bound_and_is_told`.
//! - Server requests beyond a limit are refused: `a_flood_of_questions_is_refused_beyond_a_bound`.

mod driver;
mod request_table;
mod response_slot;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};
use tokio::task::JoinHandle;
use trunkline_protocol::envelope::MessageLimits;
use trunkline_protocol::{Request, RequestId};
use trunkline_transport::Channel;
use trunkline_transport::process::ServerProcess;

use self::driver::ChannelDriver;
use self::response_slot::ResponseSlot;
use super::{
    ClientTransport, ExchangeEvent, InputRecipient, OutgoingMessage, OutgoingRequest, RequestExchange,
    TransportFailure, UnsolicitedSender,
};
use crate::error::Error;

/// Notifications and answers that wait to be written; beyond it whoever posts one waits.
const MAX_POSTS: usize = 64;

/// The bounds of one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelLimits {
    /// How messages may be nested and batched.
    pub(crate) bounds: MessageLimits,
    /// Requests at one time; beyond it they wait.
    pub(crate) in_flight: usize,
    /// Bytes that may wait for the peer to read before requests wait with us instead.
    pub(crate) queued_bytes: usize,
    /// Messages that make no sense before the peer is given up.
    pub(crate) malformed_messages: usize,
}

/// Carries requests over one channel.
pub(crate) struct ChannelTransport {
    shared: Arc<ChannelShared>,
    driver: Mutex<Option<JoinHandle<()>>>,
    /// The program at the other end, if we started it; it ends with the carrier.
    process: Mutex<Option<ServerProcess>>,
}

/// What the driver and those who call have in common.
#[derive(Debug)]
pub(super) struct ChannelShared {
    outbox: Mutex<CommandQueue>,
    driver: AtomicWaker,
    /// Whether nobody is left who could call.
    closed: AtomicBool,
    request_permits: Semaphore,
    post_permits: Arc<Semaphore>,
    /// Requests that were given up and within which the server may still ask something.
    abandoned: AtomicUsize,
}

#[derive(Debug, Default)]
struct CommandQueue {
    commands: Vec<DriverCommand>,
    /// Set once the driver is over: nothing that is put in will ever be taken out.
    closed: Option<TransportFailure>,
}

/// What the driver is told.
#[derive(Debug)]
enum DriverCommand {
    Request {
        id: u64,
        body: String,
        slot: Arc<ResponseSlot>,
        recipient: InputRecipient,
        is_cancellable: bool,
        is_subscription: bool,
    },
    Post {
        body: String,
        answers: Option<RequestId>,
        sent: oneshot::Sender<()>,
        _permit: OwnedSemaphorePermit,
    },
    /// Nobody waits for a request any more.
    Abandon(u64, InputRecipient),
    /// Nobody answers a question; whether it belonged to whom it was given is certain, or not.
    ReturnRequest(Request, bool),
}

impl ChannelTransport {
    /// Begins to drive a channel, on a task of its own that ends with the carrier or with the channel.
    pub(crate) fn new(channel: impl Channel, aside: UnsolicitedSender, limits: ChannelLimits) -> Self {
        let shared = Arc::new(ChannelShared::new(&limits));
        let driver = tokio::spawn(ChannelDriver::new(channel, shared.clone(), aside, limits));
        Self { shared, driver: Mutex::new(Some(driver)), process: Mutex::default() }
    }

    /// Takes the program at the other end into keeping.
    pub(crate) fn with_process(mut self, process: ServerProcess) -> Self {
        self.process = Mutex::new(Some(process));
        self
    }
}

impl ClientTransport for ChannelTransport {
    fn request(&self, outgoing: OutgoingRequest) -> RequestExchange {
        RequestExchange::over_channel(ChannelExchange::new(self.shared.clone(), outgoing))
    }

    fn post(&self, posted: OutgoingMessage) -> BoxFuture<'static, Result<(), TransportFailure>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let gone = || TransportFailure::not_delivered("the connection is closed");
            let place = shared.post_permits.clone().acquire_owned().await.map_err(|_| gone())?;
            let (sent, written) = oneshot::channel();
            let OutgoingMessage { body, in_reply_to: answers, .. } = posted;
            shared.send_command(DriverCommand::Post { body, answers, sent, _permit: place })?;
            written.await.map_err(|_| gone())
        })
    }

    fn close_reason(&self) -> Option<String> {
        let gone = self.shared.lock().closed.clone();
        gone.map(|loss| Error::from(loss).to_string())
    }

    fn is_closed(&self) -> bool {
        self.shared.lock().closed.is_some()
    }

    fn abandoned_requests(&self) -> usize {
        self.shared.abandoned.load(Ordering::Acquire)
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.shared.close();
        let driver = self.driver.lock().take();
        let process = self.process.lock().take();
        Box::pin(async move {
            if let Some(driver) = driver {
                // It ends by itself; that it was aborted at the end of the runtime is an end too.
                let _ = driver.await;
            }
            if let Some(process) = process {
                let exit = process.shut_down().await;
                tracing::debug!(%exit, "the server was ended");
            }
        })
    }
}

impl Drop for ChannelTransport {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for ChannelTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelTransport").finish_non_exhaustive()
    }
}

impl ChannelShared {
    fn new(limits: &ChannelLimits) -> Self {
        Self {
            outbox: Mutex::default(),
            driver: AtomicWaker::new(),
            closed: AtomicBool::new(false),
            request_permits: Semaphore::new(limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            post_permits: Arc::new(Semaphore::new(MAX_POSTS)),
            abandoned: AtomicUsize::new(0),
        }
    }

    /// Counts a request that was given up, if something may still be asked within it.
    fn count_abandoned(&self, answerer: InputRecipient) {
        self.abandoned.fetch_add(usize::from(answerer.can_answer()), Ordering::AcqRel);
    }

    fn has_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) > 0
    }

    /// Counts it off again, since nothing can be asked within it any more.
    fn uncount_abandoned(&self, answerer: InputRecipient) {
        self.abandoned.fetch_sub(usize::from(answerer.can_answer()), Ordering::AcqRel);
    }

    /// Tells the driver something, unless it is gone.
    fn send_command(&self, command: DriverCommand) -> Result<(), TransportFailure> {
        let mut outbox = self.lock();
        if let Some(loss) = &outbox.closed {
            return Err(loss.clone());
        }
        outbox.commands.push(command);
        // The driver is woken for the first only: it takes everything that is there.
        let is_first = outbox.commands.len() == 1;
        drop(outbox);
        if is_first {
            self.driver.wake();
        }
        Ok(())
    }

    /// Takes back a question that nobody answers.
    pub(super) fn return_request(&self, question: Request, certain: bool) {
        // A driver that is gone has nobody to answer.
        let _ = self.send_command(DriverCommand::ReturnRequest(question, certain));
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.driver.wake();
    }

    fn lock(&self) -> MutexGuard<'_, CommandQueue> {
        self.outbox.lock()
    }
}

/// A request over a channel, from before it is sent until its response is here.
#[derive(Debug)]
pub(super) struct ChannelExchange {
    shared: Arc<ChannelShared>,
    slot: Arc<ResponseSlot>,
    id: u64,
    recipient: InputRecipient,
    stage: ChannelExchangeStage,
}

#[derive(Debug)]
enum ChannelExchangeStage {
    /// Written, and nobody knows of it.
    Written(EncodedRequest),
    /// Waiting for one of those in flight to end.
    Queued(EncodedRequest, PermitFuture),
    /// With the driver.
    InFlight,
    Finished,
}

/// What a channel has to know of a request.
#[derive(Debug)]
struct EncodedRequest {
    body: String,
    is_cancellable: bool,
    is_subscription: bool,
}

struct PermitFuture(BoxFuture<'static, bool>);

impl fmt::Debug for PermitFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

impl ChannelExchange {
    fn new(shared: Arc<ChannelShared>, outgoing: OutgoingRequest) -> Self {
        let (id, answerer) = (outgoing.id, outgoing.recipient);
        let written = EncodedRequest {
            is_cancellable: outgoing.is_cancellable(),
            is_subscription: outgoing.is_subscription(),
            body: outgoing.body,
        };
        Self {
            shared,
            slot: Arc::default(),
            id,
            recipient: answerer,
            stage: ChannelExchangeStage::Written(written),
        }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ExchangeEvent>> {
        loop {
            // Where a request is nearly all of the time, and need not be taken out of.
            if let ChannelExchangeStage::InFlight = self.stage {
                let arrived = ready!(self.slot.poll_next(cx));
                if matches!(arrived, ExchangeEvent::Response(_) | ExchangeEvent::Failed(_)) {
                    self.stage = ChannelExchangeStage::Finished;
                }
                return Poll::Ready(Some(arrived));
            }
            match std::mem::replace(&mut self.stage, ChannelExchangeStage::Finished) {
                ChannelExchangeStage::Written(written) => {
                    // The driver gives the place back when the request is over.
                    let has_place =
                        self.shared.request_permits.try_acquire().map(SemaphorePermit::forget).is_ok();
                    if !has_place {
                        self.stage =
                            ChannelExchangeStage::Queued(written, PermitFuture::acquire(self.shared.clone()));
                    } else if let Err(loss) = self.send(written) {
                        return Poll::Ready(Some(ExchangeEvent::Failed(loss)));
                    }
                }
                ChannelExchangeStage::Queued(written, mut place) => {
                    let Poll::Ready(given) = place.0.as_mut().poll(cx) else {
                        self.stage = ChannelExchangeStage::Queued(written, place);
                        return Poll::Pending;
                    };
                    if !given {
                        return Poll::Ready(Some(ExchangeEvent::Failed(self.shared.close_failure())));
                    }
                    if let Err(loss) = self.send(written) {
                        return Poll::Ready(Some(ExchangeEvent::Failed(loss)));
                    }
                }
                ChannelExchangeStage::InFlight | ChannelExchangeStage::Finished => return Poll::Ready(None),
            }
        }
    }

    fn send(&mut self, written: EncodedRequest) -> Result<(), TransportFailure> {
        let EncodedRequest { body, is_cancellable, is_subscription: stands } = written;
        let (id, slot, answerer) = (self.id, self.slot.clone(), self.recipient);
        self.shared.send_command(DriverCommand::Request {
            id,
            body,
            slot,
            recipient: answerer,
            is_cancellable,
            is_subscription: stands,
        })?;
        self.stage = ChannelExchangeStage::InFlight;
        Ok(())
    }
}

impl Drop for ChannelExchange {
    fn drop(&mut self) {
        if matches!(self.stage, ChannelExchangeStage::InFlight) {
            // Counted here and not by the driver: a caller that gave its request up may look at once.
            self.shared.count_abandoned(self.recipient);
            // A driver that is gone has nobody to tell.
            let _ = self.shared.send_command(DriverCommand::Abandon(self.id, self.recipient));
        }
    }
}

impl PermitFuture {
    /// Waits for a place; false once the driver is over.
    fn acquire(shared: Arc<ChannelShared>) -> Self {
        Self(Box::pin(async move {
            match shared.request_permits.acquire().await {
                Ok(place) => {
                    place.forget();
                    true
                }
                Err(_) => false,
            }
        }))
    }
}

impl ChannelShared {
    fn close_failure(&self) -> TransportFailure {
        self.lock()
            .closed
            .clone()
            .unwrap_or_else(|| TransportFailure::not_delivered("the connection is closed"))
    }
}
