//! Acts on what other processes send.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use trunkline_protocol::envelope::{self, MessageLimits, MessageOrBatch};
use trunkline_protocol::{Message, RawJson, RequestId};
use trunkline_session::{BusEvent, ProcessId, SessionBus, SessionId};

use super::link::BusLink;
use super::message::{BusMessage, stream_key};
use super::outcome::{BusMessageOutcome, count};
use super::{follow, handover, relay};
use crate::change::ServerChange;
use crate::edge::legacy::{LegacySessions, LiveSession};
use crate::server_core::ServerCore;

/// Receives until this process has left the bus, or its server is gone.
pub(super) async fn receive(bus: Arc<dyn SessionBus>, core: Weak<ServerCore>) {
    while let Some(event) = bus.next().await {
        let Some(core) = core.upgrade() else { return };
        let Some(link) = core.bus.clone() else { return };
        match event {
            BusEvent::Message(bytes) | BusEvent::Published(bytes) => handle_bytes(&core, &link, &bytes),
            BusEvent::Gap => {
                tracing::warn!(
                    "messages of other processes were lost; sessions are read from their store again"
                );
                for sessions in link.sessions() {
                    tokio::spawn(async move { sessions.revalidate().await });
                }
            }
        }
    }
}

fn handle_bytes(core: &Arc<ServerCore>, link: &Arc<BusLink>, bytes: &Bytes) {
    match BusMessage::from_bytes(bytes) {
        Some(message) => {
            count(message.kind(), BusMessageOutcome::Received);
            // An id that cannot be read is that of another version; the message has no effect.
            let _ = handle(core, link, message);
        }
        None => {
            tracing::warn!("a message of another process could not be read; run one version on all of them");
        }
    }
}

fn handle(core: &Arc<ServerCore>, link: &Arc<BusLink>, message: BusMessage) -> Option<()> {
    match message {
        BusMessage::Response { session, principal, response } => {
            let session = find(link, &session)?;
            if *session.principal() == principal.to_principal() {
                deliver_response(&session, response);
            }
        }
        BusMessage::Cancelled { session, principal, request } => {
            let session = find(link, &session)?;
            if *session.principal() == principal.to_principal() {
                session.cancel_call(&RequestId::from_raw(RawJson::parse(request).ok()?)?);
            }
        }
        BusMessage::RootsChanged { session, principal, is_initialized } => {
            let session = find(link, &session)?;
            if *session.principal() == principal.to_principal() {
                if is_initialized {
                    session.mark_initialized();
                }
                session.state().roots.refresh();
            }
        }
        BusMessage::SessionEnded { session } => {
            let session = SessionId::parse(session.as_bytes())?;
            link.sessions().iter().for_each(|sessions| sessions.end_here(session));
        }
        BusMessage::RecordChanged { session } => {
            let session = SessionId::parse(session.as_bytes())?;
            let (sessions, _) = find_with_sessions(link, session)?;
            tokio::spawn(async move { sessions.reload(session).await });
        }
        BusMessage::Changed { change } => {
            if let Some(changes) = core.handler.changes() {
                changes.publish_here(&ServerChange::from(change));
            }
        }
        BusMessage::Follow { session, stream, from } => {
            follow::serve(link, stream_key(&session, stream)?, ProcessId::parse(&from)?);
        }
        BusMessage::Grown { session, stream, is_over } => {
            link.followed.mark_grown(stream_key(&session, stream)?, is_over);
        }
        BusMessage::TakeOver { session, stream, from } => {
            handover::hand_over(link, stream_key(&session, stream)?, ProcessId::parse(&from)?);
        }
        BusMessage::HandOver { session, changes, messages, is_reply } => {
            let session = SessionId::parse(session.as_bytes())?;
            handover::accept(core, link, session, changes, messages, is_reply);
        }
        relayed @ (BusMessage::Relay { .. }
        | BusMessage::Relayed { .. }
        | BusMessage::RelayRead { .. }
        | BusMessage::RelayCancelled { .. }) => return handle_relayed(core, link, relayed),
    }
    Some(())
}

/// Acts on a message about a call that one process continues for a client of another.
fn handle_relayed(core: &Arc<ServerCore>, link: &Arc<BusLink>, message: BusMessage) -> Option<()> {
    match message {
        BusMessage::Relay { relay, from, request, origin } => {
            relay::begin(core, link, (ProcessId::parse(&from)?, relay), request, *origin);
        }
        BusMessage::Relayed { relay, event } => link.relayed.deliver(relay, event),
        BusMessage::RelayRead { relay, from, messages } => {
            link.owned.add_credit((ProcessId::parse(&from)?, relay), messages);
        }
        BusMessage::RelayCancelled { relay, from } => link.owned.cancel((ProcessId::parse(&from)?, relay)),
        _ => return None,
    }
    Some(())
}

/// Finds a session that is in use here.
fn find(link: &BusLink, id: &str) -> Option<Arc<LiveSession>> {
    find_with_sessions(link, SessionId::parse(id.as_bytes())?).map(|(_, session)| session)
}

pub(super) fn find_with_sessions(
    link: &BusLink,
    id: SessionId,
) -> Option<(Arc<LegacySessions>, Arc<LiveSession>)> {
    link.sessions().into_iter().find_map(|sessions| {
        let session = sessions.in_use(id)?;
        Some((sessions, session))
    })
}

fn deliver_response(session: &LiveSession, text: String) {
    if let Ok(MessageOrBatch::One(Message::Response(response))) =
        envelope::read(text.into(), MessageLimits::default())
    {
        session.deliver_response(response);
    }
}
