//! Continues calls of this process that their clients retry at another one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use trunkline_protocol::envelope::{self, MessageOrBatch};
use trunkline_protocol::{Message, Refusal, RequestId, era};
use trunkline_session::{BusDelivery, ProcessId, StoreError};

use super::link::BusLink;
use super::message::{BusMessage, RelayedEvent, SentOrigin};
use crate::edge::modern;
use crate::edge::{CallEvent, EraExchange, MessageStart, RenderedResponse};
use crate::server_core::ServerCore;

/// The most calls of this process for clients at other processes.
const MAX_OWNED: usize = 256;

/// How many messages may be sent that the client has not taken.
pub(super) const CREDIT: usize = 32;

/// How often, and after what pause, an event is sent again while the bus is unavailable.
const SEND_ATTEMPTS: u32 = 10;
const SEND_PAUSE: Duration = Duration::from_millis(500);

/// The process of the client, and its number for the call.
type RelayKey = (ProcessId, u64);

/// The calls that this process continues for clients of other processes.
#[derive(Default)]
pub(crate) struct OwnedRelays {
    by_key: Mutex<HashMap<RelayKey, Arc<OwnedRelay>>>,
}

struct OwnedRelay {
    credit: Semaphore,
    cancelled: Notify,
}

impl OwnedRelays {
    fn insert(&self, key: RelayKey) -> Option<Arc<OwnedRelay>> {
        let mut by_key = self.by_key.lock();
        if by_key.len() >= MAX_OWNED {
            return None;
        }
        let relay = Arc::new(OwnedRelay { credit: Semaphore::new(CREDIT), cancelled: Notify::new() });
        by_key.insert(key, relay.clone());
        Some(relay)
    }

    pub(super) fn add_credit(&self, key: RelayKey, messages: u32) {
        let relay = self.by_key.lock().get(&key).cloned();
        if let Some(relay) = relay {
            let room = CREDIT.saturating_sub(relay.credit.available_permits());
            relay.credit.add_permits(usize::try_from(messages).unwrap_or(usize::MAX).min(room));
        }
    }

    pub(super) fn cancel(&self, key: RelayKey) {
        let relay = self.by_key.lock().get(&key).cloned();
        if let Some(relay) = relay {
            relay.cancelled.notify_one();
        }
    }
}

/// Begins to continue a call; its events go back to the process of its client.
pub(super) fn begin(
    core: &Arc<ServerCore>,
    link: &Arc<BusLink>,
    key: RelayKey,
    request: String,
    origin: SentOrigin,
) {
    let relay = link.owned.insert(key);
    let (core, link) = (core.clone(), link.clone());
    tokio::spawn(async move {
        let client = RelayClient { link: &link, key };
        match relay {
            Some(relay) => {
                tokio::select! {
                    biased;
                    // Dropping the call cancels it.
                    () = relay.cancelled.notified() => {}
                    () = run(&core, &client, &relay, request, origin) => {}
                }
                link.owned.by_key.lock().remove(&key);
            }
            None => {
                let reason =
                    "the process that holds this call serves too many clients of others; try again later";
                let _ = client.send(RelayedEvent::Failed(reason.to_owned())).await;
            }
        }
    });
}

async fn run(
    core: &Arc<ServerCore>,
    client: &RelayClient<'_>,
    relay: &OwnedRelay,
    request: String,
    origin: SentOrigin,
) {
    let mut start = match begin_request(core, request, origin) {
        Ok(start) => start,
        Err((id, refusal)) => MessageStart::Response(modern::refuse(id.as_ref(), &refusal)),
    };
    if let MessageStart::Deferred(_, future) = start {
        start = future.await;
    }
    match start {
        MessageStart::Call(exchange) => drive(client, relay, exchange).await,
        MessageStart::Response(answer) => {
            let _ = client.send_response(answer).await;
        }
        MessageStart::Accepted | MessageStart::Deferred(..) | MessageStart::Subscription(_) => {
            let _ = client.send(RelayedEvent::NoResponse).await;
        }
    }
}

/// Begins the request as the modern edge does. Its headers were checked by the process that received it.
fn begin_request(
    core: &Arc<ServerCore>,
    request: String,
    origin: SentOrigin,
) -> Result<MessageStart, (Option<RequestId>, Refusal)> {
    let Ok(MessageOrBatch::One(Message::Request(request))) =
        envelope::read(request.into(), core.limits.bounds)
    else {
        return Err((None, Refusal::INVALID_REQUEST));
    };
    let validated = era::validate_request(&request, None, core.revisions)
        .map_err(|refusal| (Some(request.id.clone()), refusal))?;
    Ok(modern::begin(core, request, validated, origin.into_origin()))
}

/// Sends the events of a call until it is over, or its client is gone.
async fn drive(client: &RelayClient<'_>, relay: &OwnedRelay, mut exchange: EraExchange) {
    loop {
        let event = match std::future::poll_fn(|cx| exchange.poll_event(cx)).await {
            CallEvent::Message(message) => {
                let Ok(permit) = relay.credit.acquire().await else { return };
                permit.forget();
                RelayedEvent::Message(message)
            }
            CallEvent::ReleaseStream(_) => continue,
            CallEvent::Response(answer) => {
                // The call is over, also if the process of its client is gone.
                let _ = client.send_response(answer).await;
                return;
            }
            CallEvent::NoResponse => RelayedEvent::NoResponse,
        };
        let is_over = matches!(event, RelayedEvent::NoResponse);
        if client.send(event).await == BusDelivery::ProcessGone || is_over {
            return;
        }
    }
}

/// The process of the client.
struct RelayClient<'a> {
    link: &'a BusLink,
    key: RelayKey,
}

impl RelayClient<'_> {
    async fn send_response(&self, answer: RenderedResponse) -> BusDelivery {
        let RenderedResponse { message, status } = answer;
        self.send(RelayedEvent::Response { message, status }).await
    }

    /// Sends an event, and waits while the bus is unavailable. A client that cannot be reached counts as gone.
    async fn send(&self, event: RelayedEvent) -> BusDelivery {
        let (process, relay) = self.key;
        let mut message = BusMessage::Relayed { relay, event };
        for _ in 0..SEND_ATTEMPTS {
            match self.link.send(process, &message).await {
                Ok(delivery) => return delivery,
                Err(StoreError::TooLarge) => {
                    let reason = "the response is too large to be sent through another server process";
                    message = BusMessage::Relayed { relay, event: RelayedEvent::Failed(reason.to_owned()) };
                }
                Err(error) => {
                    tracing::debug!(%error, "an event of a relayed call is sent again");
                    tokio::time::sleep(SEND_PAUSE).await;
                }
            }
        }
        BusDelivery::ProcessGone
    }
}
