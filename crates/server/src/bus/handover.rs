//! The messages of a session that belong to no call: one process sends them at a time, and hands them over to the next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use trunkline_session::{BusDelivery, ProcessId, SessionId, StreamId};

use super::link::BusLink;
use super::message::{BusMessage, PublishedChange};
use super::receive::find_with_sessions;
use crate::change::ServerChange;
use crate::edge::legacy::LiveSession;
use crate::server_core::ServerCore;

/// How long a stream waits for what the previous process has to hand over.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(1);

/// What waits to be sent in a session.
#[derive(Debug, Default)]
pub(crate) struct OutboxMessages {
    pub(crate) changes: Vec<ServerChange>,
    pub(crate) messages: Vec<String>,
}

impl OutboxMessages {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.messages.is_empty()
    }

    fn to_message(&self, session: SessionId, is_reply: bool) -> BusMessage {
        BusMessage::HandOver {
            session: session.to_string(),
            changes: self.changes.iter().map(PublishedChange::from).collect(),
            messages: self.messages.clone(),
            is_reply,
        }
    }
}

impl BusLink {
    /// Gets what the process before this one has not sent; `None` if that has ended, or does not reply in time.
    pub(crate) async fn take_over(
        &self,
        session: SessionId,
        stream: StreamId,
        previous: ProcessId,
    ) -> Option<OutboxMessages> {
        let (sender, handed_over) = oneshot::channel();
        self.awaited.lock().insert(session, sender);
        let message = BusMessage::TakeOver {
            session: session.to_string(),
            stream: stream.0,
            from: self.process().to_string(),
        };
        let handed_over = match self.send(previous, &message).await {
            Ok(BusDelivery::Delivered) => tokio::time::timeout(HANDOVER_TIMEOUT, handed_over).await.ok(),
            Ok(BusDelivery::ProcessGone) | Err(_) => None,
        };
        self.awaited.lock().remove(&session);
        handed_over?.ok()
    }

    /// Sends what this process could not send any more to the one that has taken over.
    pub(crate) fn pass_on(self: &Arc<Self>, session: SessionId, to: ProcessId, left: &OutboxMessages) {
        if !left.is_empty() {
            self.send_soon(to, left.to_message(session, false));
        }
    }
}

/// Ends the part of this process in sending the messages of a session.
pub(super) fn hand_over(link: &Arc<BusLink>, (session, stream): (SessionId, StreamId), to: ProcessId) {
    let found = find_with_sessions(link, session).map(|(_, live)| live);
    let left = found.as_ref().map(|live| live.lose_outbox(stream, to)).unwrap_or_default();
    let link = link.clone();
    tokio::spawn(async move {
        let sent = link.send(to, &left.to_message(session, true)).await;
        if let (Some(live), Ok(BusDelivery::ProcessGone) | Err(_)) = (found, sent) {
            live.queue_messages(left);
        }
    });
}

/// Takes over what another process has not sent.
pub(super) fn accept(
    core: &Arc<ServerCore>,
    link: &Arc<BusLink>,
    session: SessionId,
    changes: Vec<PublishedChange>,
    messages: Vec<String>,
    is_reply: bool,
) {
    let changes = changes.into_iter().map(ServerChange::from).collect();
    let mut left = OutboxMessages { changes, messages };
    let awaited = if is_reply { link.awaited.lock().remove(&session) } else { None };
    if let Some(awaited) = awaited {
        match awaited.send(left) {
            Ok(()) => return,
            Err(unread) => left = unread,
        }
    }
    let live: Option<Arc<LiveSession>> = find_with_sessions(link, session).map(|(_, live)| live);
    if let Some(live) = live {
        live.subscription(&*core.handler);
        live.queue_messages(left);
    }
}
