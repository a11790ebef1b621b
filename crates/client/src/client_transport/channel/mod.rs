//! Requests over a channel: one driver task owns it, and callers send commands to that task.
//!
//! A caller puts an encoded request into the command queue and waits on a response slot of its own. The driver
//! takes the whole queue in one poll, writes once, reads all messages that have arrived and fills the slots. With
//! several concurrent callers it yields once before it writes. So thirty concurrent calls cost one write and one
//! read together, and no caller waits for a lock that is held for long.
//!
//! # Invariants
//!
//! - Notifications that are queued for one call are bounded, and the loss is reported:
//!   `notification_flood_is_bounded_and_reported_as_skipped`.
//! - Server requests beyond a limit are refused: `session_input_request_flood_is_refused_beyond_the_limit`.

mod driver;
mod process_output;
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
use crate::message_budget::MessageBudget;

/// Queued notifications and responses; beyond it the sender waits.
const MAX_POSTS: usize = 64;

/// The limits of one channel.
#[derive(Clone, Debug)]
pub(crate) struct ChannelLimits {
    /// Nesting depth and batch size of messages.
    pub(crate) bounds: MessageLimits,
    /// Concurrent requests; beyond it they wait.
    pub(crate) in_flight: usize,
    /// Bytes in the write queue before further requests wait in the command queue.
    pub(crate) queued_bytes: usize,
    /// Malformed messages before the connection is closed.
    pub(crate) malformed_messages: usize,
    /// The memory for messages that are being received.
    pub(crate) message_memory: MessageBudget,
}

/// A transport over one channel.
pub(crate) struct ChannelTransport {
    shared: Arc<ChannelShared>,
    driver: Mutex<Option<JoinHandle<()>>>,
    /// The server process, if we started it; it is stopped with the transport.
    process: Mutex<Option<ServerProcess>>,
}

/// The state shared by the driver and the callers.
#[derive(Debug)]
pub(super) struct ChannelShared {
    outbox: Mutex<CommandQueue>,
    driver: AtomicWaker,
    /// Whether the transport was closed or dropped.
    closed: AtomicBool,
    request_permits: Semaphore,
    post_permits: Arc<Semaphore>,
    /// Abandoned requests within which the server may still request input.
    abandoned: AtomicUsize,
}

#[derive(Debug, Default)]
struct CommandQueue {
    commands: Vec<DriverCommand>,
    /// Set once the driver has ended: later commands are never executed.
    closed: Option<TransportFailure>,
}

/// A command for the driver.
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
    /// The caller dropped its request.
    Abandon(u64, InputRecipient),
    /// The recipient dropped an input request; the flag is whether it certainly belonged to that recipient.
    ReturnRequest(Request, bool),
}

/// Why a request with the token of a caller is not sent, and no channel is opened for such requests.
pub(crate) const EXCHANGE_TRANSPORT: &str = "tokens of callers are exchanged over Streamable HTTP only: other transports are authorized once for all calls";

impl ChannelTransport {
    /// Spawns the driver of a channel; the task ends with the transport or with the channel.
    pub(crate) fn new(channel: impl Channel, unsolicited: UnsolicitedSender, limits: ChannelLimits) -> Self {
        let shared = Arc::new(ChannelShared::new(&limits));
        let driver = tokio::spawn(ChannelDriver::new(channel, shared.clone(), unsolicited, limits));
        Self { shared, driver: Mutex::new(Some(driver)), process: Mutex::default() }
    }

    /// Adds the server process, which the transport owns from then on.
    pub(crate) fn with_process(mut self, process: ServerProcess) -> Self {
        self.process = Mutex::new(Some(process));
        self
    }
}

impl ClientTransport for ChannelTransport {
    fn request(&self, outgoing: OutgoingRequest) -> RequestExchange {
        if outgoing.caller_token.is_some() {
            return RequestExchange::failed(TransportFailure::not_sent(EXCHANGE_TRANSPORT));
        }
        RequestExchange::over_channel(ChannelExchange::new(self.shared.clone(), outgoing))
    }

    fn post(&self, posted: OutgoingMessage) -> BoxFuture<'static, Result<(), TransportFailure>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let gone = || TransportFailure::not_sent("the connection is closed");
            let permit = shared.post_permits.clone().acquire_owned().await.map_err(|_| gone())?;
            let (sent, written) = oneshot::channel();
            let OutgoingMessage { body, in_reply_to: answers, .. } = posted;
            shared.send_command(DriverCommand::Post { body, answers, sent, _permit: permit })?;
            written.await.map_err(|_| gone())
        })
    }

    fn close_reason(&self) -> Option<String> {
        let gone = self.shared.lock().closed.clone();
        gone.map(|failure| Error::from(failure).to_string())
    }

    fn is_closed(&self) -> bool {
        self.shared.lock().closed.is_some()
    }

    fn process_output(&self) -> Option<String> {
        self.process.lock().as_ref().and_then(process_output::describe)
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
                // The driver ends by itself; an abort at runtime shutdown is an end too.
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

    /// Counts an abandoned request, if the server may still request input within it.
    fn count_abandoned(&self, recipient: InputRecipient) {
        self.abandoned.fetch_add(usize::from(recipient.can_answer()), Ordering::AcqRel);
    }

    fn has_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) > 0
    }

    /// Stops counting an abandoned request, within which the server can request input no longer.
    fn uncount_abandoned(&self, recipient: InputRecipient) {
        self.abandoned.fetch_sub(usize::from(recipient.can_answer()), Ordering::AcqRel);
    }

    /// Queues a command for the driver.
    fn send_command(&self, command: DriverCommand) -> Result<(), TransportFailure> {
        let mut outbox = self.lock();
        if let Some(failure) = &outbox.closed {
            return Err(failure.clone());
        }
        outbox.commands.push(command);
        // Only the first command wakes the driver, which takes the whole queue.
        let is_first = outbox.commands.len() == 1;
        drop(outbox);
        if is_first {
            self.driver.wake();
        }
        Ok(())
    }

    /// Returns an unanswered input request to the driver.
    pub(super) fn return_request(&self, request: Request, certain: bool) {
        // Fails only if the driver has ended, and then nothing is left to do.
        let _ = self.send_command(DriverCommand::ReturnRequest(request, certain));
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.driver.wake();
    }

    fn lock(&self) -> MutexGuard<'_, CommandQueue> {
        self.outbox.lock()
    }
}

/// A request over a channel, from before it is sent to its response.
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
    /// Encoded, and not sent to the driver.
    Written(EncodedRequest),
    /// Waiting for a permit.
    Queued(EncodedRequest, PermitFuture),
    /// Owned by the driver.
    InFlight,
    Finished,
}

/// The parts of a request that a channel needs.
#[derive(Debug)]
struct EncodedRequest {
    body: String,
    is_cancellable: bool,
    is_subscription: bool,
}

struct PermitFuture(BoxFuture<'static, bool>);

impl fmt::Debug for PermitFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermitFuture")
    }
}

impl ChannelExchange {
    fn new(shared: Arc<ChannelShared>, outgoing: OutgoingRequest) -> Self {
        let (id, recipient) = (outgoing.id, outgoing.recipient);
        let written = EncodedRequest {
            is_cancellable: outgoing.is_cancellable(),
            is_subscription: outgoing.is_subscription(),
            body: outgoing.body,
        };
        Self { shared, slot: Arc::default(), id, recipient, stage: ChannelExchangeStage::Written(written) }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ExchangeEvent>> {
        loop {
            // The common stage, polled in place.
            if let ChannelExchangeStage::InFlight = self.stage {
                let arrived = ready!(self.slot.poll_next(cx));
                if matches!(arrived, ExchangeEvent::Response(_) | ExchangeEvent::Failed(_)) {
                    self.stage = ChannelExchangeStage::Finished;
                }
                return Poll::Ready(Some(arrived));
            }
            match std::mem::replace(&mut self.stage, ChannelExchangeStage::Finished) {
                ChannelExchangeStage::Written(written) => {
                    // The driver returns the permit when the request has ended.
                    let has_permit =
                        self.shared.request_permits.try_acquire().map(SemaphorePermit::forget).is_ok();
                    if !has_permit {
                        self.stage =
                            ChannelExchangeStage::Queued(written, PermitFuture::acquire(self.shared.clone()));
                    } else if let Err(failure) = self.send(written) {
                        return Poll::Ready(Some(ExchangeEvent::Failed(failure)));
                    }
                }
                ChannelExchangeStage::Queued(written, mut permit) => {
                    let Poll::Ready(is_granted) = permit.0.as_mut().poll(cx) else {
                        self.stage = ChannelExchangeStage::Queued(written, permit);
                        return Poll::Pending;
                    };
                    if !is_granted {
                        return Poll::Ready(Some(ExchangeEvent::Failed(self.shared.close_failure())));
                    }
                    if let Err(failure) = self.send(written) {
                        return Poll::Ready(Some(ExchangeEvent::Failed(failure)));
                    }
                }
                ChannelExchangeStage::InFlight | ChannelExchangeStage::Finished => return Poll::Ready(None),
            }
        }
    }

    fn send(&mut self, written: EncodedRequest) -> Result<(), TransportFailure> {
        let EncodedRequest { body, is_cancellable, is_subscription } = written;
        let (id, slot, recipient) = (self.id, self.slot.clone(), self.recipient);
        self.shared.send_command(DriverCommand::Request {
            id,
            body,
            slot,
            recipient,
            is_cancellable,
            is_subscription,
        })?;
        self.stage = ChannelExchangeStage::InFlight;
        Ok(())
    }
}

impl Drop for ChannelExchange {
    fn drop(&mut self) {
        if matches!(self.stage, ChannelExchangeStage::InFlight) {
            // Counted here and not by the driver, so that the caller sees the new count at once.
            self.shared.count_abandoned(self.recipient);
            // Fails only if the driver has ended, and then nothing is left to do.
            let _ = self.shared.send_command(DriverCommand::Abandon(self.id, self.recipient));
        }
    }
}

impl PermitFuture {
    /// Acquires a permit; false once the driver has ended.
    fn acquire(shared: Arc<ChannelShared>) -> Self {
        Self(Box::pin(async move {
            match shared.request_permits.acquire().await {
                Ok(permit) => {
                    permit.forget();
                    true
                }
                Err(_) => false,
            }
        }))
    }
}

impl ChannelShared {
    fn close_failure(&self) -> TransportFailure {
        self.lock().closed.clone().unwrap_or_else(|| TransportFailure::not_sent("the connection is closed"))
    }
}
