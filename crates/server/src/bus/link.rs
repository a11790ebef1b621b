use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use trunkline_protocol::envelope::MessageOrBatch;
use trunkline_protocol::{JsonWriter, Message, Notification, Refusal, Response, era};
use trunkline_session::{BusDelivery, ProcessId, SessionBus, SessionId, StoreError};

use super::follow::FollowedStreams;
use super::handover::OutboxMessages;
use super::message::{BusMessage, SentPrincipal, process_of_request};
use super::outcome::{BusMessageOutcome, count};
use super::relay::OwnedRelays;
use super::remote_call::RelayedCalls;
use crate::edge::legacy::{LegacySessions, LiveSession};
use crate::server_core::ServerCore;

/// The most published messages that wait to be sent; beyond it they are dropped.
const MAX_QUEUED: usize = 1024;

/// The most messages to single processes that are being sent without a task that waits for them.
const MAX_SENDING: usize = 1024;

/// The connection of a server to the other processes that share its sessions.
pub(crate) struct BusLink {
    bus: Arc<dyn SessionBus>,
    is_running: AtomicBool,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    sessions: Mutex<Vec<Weak<LegacySessions>>>,
    publishing: mpsc::Sender<BusMessage>,
    to_publish: Mutex<Option<mpsc::Receiver<BusMessage>>>,
    sending: Arc<Semaphore>,
    pub(super) followed: FollowedStreams,
    pub(super) relayed: RelayedCalls,
    pub(super) owned: OwnedRelays,
    /// The streams that wait for what the previous process of their session hands over.
    pub(super) awaited: Mutex<HashMap<SessionId, oneshot::Sender<OutboxMessages>>>,
}

impl BusLink {
    pub(crate) fn new(bus: Arc<dyn SessionBus>) -> Arc<Self> {
        let (publishing, to_publish) = mpsc::channel(MAX_QUEUED);
        Arc::new(Self {
            bus,
            is_running: AtomicBool::new(false),
            tasks: Mutex::default(),
            sessions: Mutex::default(),
            publishing,
            to_publish: Mutex::new(Some(to_publish)),
            sending: Arc::new(Semaphore::new(MAX_SENDING)),
            followed: FollowedStreams::default(),
            relayed: RelayedCalls::default(),
            owned: OwnedRelays::default(),
            awaited: Mutex::default(),
        })
    }

    pub(crate) fn process(&self) -> ProcessId {
        self.bus.process()
    }

    /// Starts to receive and to publish, once there is a runtime to do so.
    pub(crate) fn start(self: &Arc<Self>, core: &Arc<ServerCore>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_running.swap(true, Ordering::SeqCst) {
            return;
        }
        let receiving = runtime.spawn(super::receive::receive(self.bus.clone(), Arc::downgrade(core)));
        let mut tasks = self.tasks.lock();
        tasks.push(receiving);
        if let Some(mut queue) = self.to_publish.lock().take() {
            let bus = self.bus.clone();
            tasks.push(runtime.spawn(async move {
                while let Some(message) = queue.recv().await {
                    // It is counted and logged, and those who miss it find out later.
                    let _ = publish(&*bus, &message).await;
                }
            }));
        }
    }

    /// Delivers to these sessions from now on.
    pub(crate) fn attach(self: &Arc<Self>, core: &Arc<ServerCore>, sessions: &Arc<LegacySessions>) {
        self.sessions.lock().push(Arc::downgrade(sessions));
        self.start(core);
    }

    /// Returns the sessions that it delivers to, of each endpoint.
    pub(super) fn sessions(&self) -> Vec<Arc<LegacySessions>> {
        let mut known = self.sessions.lock();
        known.retain(|sessions| sessions.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).collect()
    }

    /// Sends a message to a process.
    ///
    /// # Errors
    /// Those of [`SessionBus::send`].
    pub(crate) async fn send(&self, to: ProcessId, message: &BusMessage) -> Result<BusDelivery, StoreError> {
        let sent = self.bus.send(to, message.to_bytes()).await;
        count(
            message.kind(),
            match &sent {
                Ok(BusDelivery::Delivered) => BusMessageOutcome::Sent,
                Ok(BusDelivery::ProcessGone) => BusMessageOutcome::ProcessGone,
                Err(_) => BusMessageOutcome::Failed,
            },
        );
        sent
    }

    /// Sends a message to a process, without waiting for it and in no order.
    pub(crate) fn send_soon(self: &Arc<Self>, to: ProcessId, message: BusMessage) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Ok(permit) = self.sending.clone().try_acquire_owned() else {
            count(message.kind(), BusMessageOutcome::Failed);
            return;
        };
        let link = self.clone();
        runtime.spawn(async move {
            if let Err(error) = link.send(to, &message).await {
                tracing::debug!(%error, %to, "a message to another process was not sent");
            }
            drop(permit);
        });
    }

    /// Sends a message to all other processes.
    ///
    /// # Errors
    /// Those of [`SessionBus::publish`].
    pub(crate) async fn publish(&self, message: &BusMessage) -> Result<(), StoreError> {
        publish(&*self.bus, message).await
    }

    /// Sends a message to all other processes, without waiting for it, in the order of these calls.
    pub(crate) fn publish_soon(&self, message: BusMessage) {
        let kind = message.kind();
        if self.publishing.try_send(message).is_err() {
            count(kind, BusMessageOutcome::Failed);
            tracing::warn!("too many messages wait for the other processes; one was dropped");
        }
    }

    /// Reports whether a process is there.
    ///
    /// # Errors
    /// Those of [`SessionBus::is_alive`].
    pub(crate) async fn is_alive(&self, process: ProcessId) -> Result<bool, StoreError> {
        self.bus.is_alive(process).await
    }

    /// Leaves the bus: other processes take this one for gone.
    pub(crate) async fn leave(&self) {
        self.bus.leave().await;
    }

    /// Sends the messages of a client that concern other processes to them, before they are acknowledged.
    ///
    /// # Errors
    /// The bus is unavailable.
    pub(crate) async fn forward(&self, session: &LiveSession, sent: &MessageOrBatch) -> Result<(), Refusal> {
        let messages: Vec<&Message> = match sent {
            MessageOrBatch::One(Message::Request(_)) => return Ok(()),
            MessageOrBatch::One(message) => vec![message],
            MessageOrBatch::Batch(messages) => messages.iter().flatten().collect(),
        };
        for message in messages {
            let forwarded = match message {
                Message::Request(_) => Ok(()),
                Message::Response(response) => self.forward_response(session, response).await,
                Message::Notification(note) => self.forward_notification(session, note).await,
            };
            forwarded.map_err(|error| {
                tracing::error!(%error, "a message of a client could not be sent to its process");
                Refusal::STORE_UNAVAILABLE
            })?;
        }
        Ok(())
    }

    async fn forward_response(&self, session: &LiveSession, response: &Response) -> Result<(), StoreError> {
        let Some(id) = &response.id else { return Ok(()) };
        let Some(owner) = process_of_request(id).filter(|owner| *owner != self.process()) else {
            return Ok(());
        };
        let message = BusMessage::Response {
            session: session.id().to_string(),
            principal: SentPrincipal::from(session.principal()),
            response: response_text(response),
        };
        if self.send(owner, &message).await? == BusDelivery::ProcessGone {
            tracing::debug!(%owner, "a response belongs to a process that has ended, and is dropped");
        }
        Ok(())
    }

    async fn forward_notification(
        &self,
        session: &LiveSession,
        note: &Notification,
    ) -> Result<(), StoreError> {
        let (id, principal) = (session.id().to_string(), SentPrincipal::from(session.principal()));
        let message = match &*note.method {
            "notifications/cancelled" => match era::cancelled_request(note) {
                Some(request) => {
                    let request = request.to_raw().as_str().to_owned();
                    BusMessage::Cancelled { session: id, principal, request }
                }
                None => return Ok(()),
            },
            "notifications/initialized" => {
                BusMessage::RootsChanged { session: id, principal, is_initialized: true }
            }
            "notifications/roots/list_changed" => {
                BusMessage::RootsChanged { session: id, principal, is_initialized: false }
            }
            _ => return Ok(()),
        };
        self.publish(&message).await
    }
}

async fn publish(bus: &dyn SessionBus, message: &BusMessage) -> Result<(), StoreError> {
    let published = bus.publish(message.to_bytes()).await;
    match &published {
        Ok(()) => count(message.kind(), BusMessageOutcome::Sent),
        Err(error) => {
            count(message.kind(), BusMessageOutcome::Failed);
            tracing::warn!(%error, "a message was not sent to the other processes");
        }
    }
    published
}

fn response_text(response: &Response) -> String {
    let mut writer = JsonWriter::with_capacity(256);
    writer.open_object();
    writer.plain_key("jsonrpc");
    writer.string("2.0");
    if let Some(id) = &response.id {
        writer.member("id", &id.to_raw());
    }
    match &response.outcome {
        Ok(result) => writer.member("result", &result.clone().into_raw()),
        Err(error) => writer.member("error", error),
    }
    writer.close_object();
    writer.into_string()
}

impl Drop for BusLink {
    fn drop(&mut self) {
        self.tasks.get_mut().iter().for_each(JoinHandle::abort);
    }
}
