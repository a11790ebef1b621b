//! Calls that another process continues: their events arrive over the bus, and go to the client as if they were made here.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use trunkline_protocol::{Refusal, RequestId};
use trunkline_session::{BusDelivery, Principal, ProcessId};

use super::link::BusLink;
use super::message::{BusMessage, RelayedEvent, SentOrigin};
use super::relay::CREDIT;
use crate::admission::{ByteBudget, BytePermit, KeyPermit, KeyQuota};
use crate::edge::modern::{ModernCall, RequestOrigin};
use crate::edge::{CallEvent, EraExchange, MessageStart, RenderedResponse};

/// The most calls that other processes continue for clients of this one, and those of one principal.
const MAX_RELAYED: usize = 256;
const MAX_RELAYED_PER_PRINCIPAL: usize = 16;

/// The most bytes of messages that clients of relayed calls have not taken.
const MAX_RELAYED_BYTES: usize = 64 << 20;

/// How often the process that continues a call is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// After how many messages the other process learns that the client has taken them.
const READ_INTERVAL: u32 = 8;

type EventSender = mpsc::Sender<(RelayedEvent, BytePermit)>;

/// The calls of this process's clients that other processes continue.
pub(crate) struct RelayedCalls {
    by_number: Mutex<HashMap<u64, EventSender>>,
    quota: KeyQuota<Principal>,
    bytes: Arc<ByteBudget>,
}

impl Default for RelayedCalls {
    fn default() -> Self {
        Self {
            by_number: Mutex::default(),
            quota: KeyQuota::new(MAX_RELAYED_PER_PRINCIPAL).with_total(MAX_RELAYED),
            bytes: ByteBudget::new(MAX_RELAYED_BYTES),
        }
    }
}

impl RelayedCalls {
    /// Delivers an event to its client; if it does not fit, the call ends with an error.
    pub(super) fn deliver(&self, relay: u64, event: RelayedEvent) {
        let mut permit = self.bytes.permit();
        let bytes = match &event {
            RelayedEvent::Message(message) | RelayedEvent::Response { message, .. } => message.len(),
            RelayedEvent::Failed(reason) => reason.len(),
            RelayedEvent::NoResponse => 0,
        };
        let fits = permit.grow(bytes);
        let mut by_number = self.by_number.lock();
        let Some(sender) = by_number.get(&relay) else { return };
        if !fits || sender.try_send((event, permit)).is_err() {
            by_number.remove(&relay);
        }
    }
}

/// The refusal of a retry, if the process that held its call has ended.
fn owner_gone() -> Refusal {
    Refusal::STALE_STATE
        .with_message("the server process that held this call has ended; start the call again")
}

/// A call that another process continues.
pub(crate) struct RemoteCall {
    call: Box<ModernCall>,
    events: mpsc::Receiver<(RelayedEvent, BytePermit)>,
    read: u32,
    relay: OpenRelay,
    /// The memory permit of a large request.
    memory_permit: Option<BytePermit>,
}

/// The relay of a call, which is cancelled when it is dropped before its end.
struct OpenRelay {
    link: Arc<BusLink>,
    owner: ProcessId,
    number: u64,
    is_over: bool,
    check: JoinHandle<()>,
    _permit: KeyPermit<Principal>,
}

impl RemoteCall {
    /// Has another process continue a call.
    pub(crate) async fn begin(
        link: Arc<BusLink>,
        mut call: Box<ModernCall>,
        owner: ProcessId,
        request: String,
        origin: RequestOrigin,
    ) -> MessageStart {
        let Some(permit) = link.relayed.quota.acquire_for(&origin.principal) else {
            return MessageStart::Response(call.refuse(&Refusal::TOO_MANY));
        };
        let Ok(number) = getrandom::u64() else {
            return MessageStart::Response(call.refuse(&Refusal::INTERNAL));
        };
        let (sender, events) = mpsc::channel(2 * CREDIT);
        link.relayed.by_number.lock().insert(number, sender);
        let (checked, process) = (Arc::downgrade(&link), owner);
        let check = tokio::spawn(async move {
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                let Some(link) = checked.upgrade() else { return };
                if let Ok(false) = link.is_alive(process).await {
                    link.relayed.by_number.lock().remove(&number);
                    return;
                }
            }
        });
        let relay = OpenRelay { link: link.clone(), owner, number, is_over: true, check, _permit: permit };
        let mut relayed = Self { call, events, read: 0, relay, memory_permit: None };
        let from = link.process().to_string();
        let message =
            BusMessage::Relay { relay: number, from, request, origin: Box::new(SentOrigin::from(&origin)) };
        let refusal = match link.send(owner, &message).await {
            Ok(BusDelivery::Delivered) => {
                relayed.relay.is_over = false;
                return MessageStart::Call(EraExchange::Relayed(Box::new(relayed)));
            }
            Ok(BusDelivery::ProcessGone) => owner_gone(),
            Err(error) => {
                tracing::error!(%error, "a retry could not be sent to the process that holds its call");
                Refusal::STORE_UNAVAILABLE
            }
        };
        MessageStart::Response(relayed.call.refuse(&refusal))
    }

    pub(crate) fn id(&self) -> &RequestId {
        self.call.id()
    }

    /// Holds the memory permit of a large request while the call runs.
    pub(crate) fn hold_permit(&mut self, reserved: BytePermit) {
        self.memory_permit = Some(reserved);
    }

    /// Polls for what the transport must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        if self.relay.is_over {
            return Poll::Ready(CallEvent::NoResponse);
        }
        let event = std::task::ready!(self.events.poll_recv(cx)).map(|(event, _)| event);
        Poll::Ready(match event {
            Some(RelayedEvent::Message(message)) => {
                self.note_read();
                CallEvent::Message(message)
            }
            Some(RelayedEvent::Response { message, status }) => {
                self.relay.is_over = true;
                self.call.record_relayed();
                CallEvent::Response(RenderedResponse { message, status })
            }
            Some(RelayedEvent::Failed(reason)) => {
                self.relay.is_over = true;
                CallEvent::Response(self.call.refuse(&Refusal::INTERNAL.with_message(reason)))
            }
            Some(RelayedEvent::NoResponse) => {
                self.relay.is_over = true;
                CallEvent::NoResponse
            }
            // The process of the call has ended, or the events did not fit; then it learns that its caller is gone.
            None => {
                let answer = self.call.refuse(&owner_gone());
                self.relay.cancel();
                CallEvent::Response(answer)
            }
        })
    }

    fn note_read(&mut self) {
        self.read += 1;
        if self.read >= READ_INTERVAL {
            let messages = std::mem::take(&mut self.read);
            let OpenRelay { link, owner, number, .. } = &self.relay;
            let from = link.process().to_string();
            link.send_soon(*owner, BusMessage::RelayRead { relay: *number, from, messages });
        }
    }
}

impl OpenRelay {
    fn cancel(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            let from = self.link.process().to_string();
            self.link.send_soon(self.owner, BusMessage::RelayCancelled { relay: self.number, from });
        }
    }
}

impl Drop for OpenRelay {
    fn drop(&mut self) {
        self.check.abort();
        self.link.relayed.by_number.lock().remove(&self.number);
        self.cancel();
    }
}
