//! Messages that are too long or malformed, and the requests that they fail.

use std::error::Error;
use std::io;

use bytes::Bytes;
use trunkline_protocol::envelope::{self, MalformedMessage, MessageLimits, MessageOrBatch, OversizedMessage};
use trunkline_protocol::{Message, RequestId};
use trunkline_transport::process::ExitReport;
use trunkline_transport::{Channel, ReceiveError};

use super::ChannelDriver;
use crate::client_transport::{
    ExchangeEvent, FailureCause, RequestDelivery, TransportFailure, TransportFailureKind,
};
use crate::dropped_message::DroppedMessage;

/// Our own messages may nest as deep as the caller's arguments.
const OUTGOING_BOUNDS: MessageLimits = MessageLimits { depth: usize::MAX, batch: 1 };

impl<C: Channel> ChannelDriver<C> {
    /// Skips an oversized message. The request that it answers fails, or the only one in flight if the message does not
    /// show what it is.
    pub(super) fn skip_oversized(&mut self, limit: usize, message: &OversizedMessage) {
        self.unsolicited.count_dropped(DroppedMessage::TooLong { limit });
        self.oversized = Some(limit);
        let named = match message {
            OversizedMessage::Response(id) => Some(id),
            OversizedMessage::Unknown => None,
            OversizedMessage::Other => return,
        };
        self.fail_answered(named, TransportFailure::too_long(limit));
    }

    /// Fails the request that an illegible response answers: the one that it names, or the only one in flight. Reports
    /// whether there is one.
    fn fail_answered(&mut self, named: Option<&RequestId>, failure: TransportFailure) -> bool {
        let entry = match named {
            Some(id) => self.table.take(id),
            None => self.table.only_request().map(|(id, _)| id).and_then(|id| self.table.remove(id)),
        };
        let Some(entry) = entry else { return false };
        self.shared.request_permits.add_permits(1);
        entry.slot.finish(ExchangeEvent::Failed(failure));
        true
    }

    /// Fails the request that the transport could not deliver, and no other.
    pub(super) fn fail_rejected(&mut self, message: Bytes, why: io::Error) {
        tracing::debug!(%why, "the peer rejected a message");
        let entry = match envelope::read(message, OUTGOING_BOUNDS) {
            Ok(MessageOrBatch::One(Message::Request(request))) => self.table.take(&request.id),
            Ok(MessageOrBatch::One(Message::Response(_))) => {
                return self.unsolicited.count_dropped(DroppedMessage::Answer);
            }
            _ => None,
        };
        let Some(entry) = entry else { return };
        self.shared.request_permits.add_permits(1);
        let failure = why
            .downcast::<TransportFailure>()
            .unwrap_or_else(|why| TransportFailure::maybe_sent(FailureCause::from_error(why)));
        entry.slot.finish(ExchangeEvent::Failed(failure));
    }

    /// Skips a malformed message. Servers print debug output to stdout: a limited amount is tolerated, and beyond
    /// it the connection ends.
    pub(super) fn receive_malformed(
        &mut self,
        malformed: &MalformedMessage,
        is_response: bool,
    ) -> Result<(), FailureCause> {
        self.unsolicited.count_dropped(DroppedMessage::Unreadable);
        let problem = format!("the server's response cannot be read: {}", malformed.refusal);
        if is_response && self.fail_answered(malformed.id.as_ref(), TransportFailure::malformed(problem)) {
            return Ok(());
        }
        self.malformed_count += 1;
        tracing::debug!(problem = %malformed.refusal, "skipped a malformed message");
        match self.limits.malformed_messages {
            limit if self.malformed_count > limit => {
                Err(format!("the server sent more than {limit} malformed messages").into())
            }
            _ => Ok(()),
        }
    }

    /// Returns why a channel is broken.
    pub(super) fn break_cause(&mut self, error: ReceiveError) -> FailureCause {
        self.oversized = None;
        match error {
            // The exit report of a process is a whole message by itself.
            ReceiveError::Broken(error)
                if error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<ExitReport>) =>
            {
                FailureCause::from_error(error)
            }
            other => {
                let is_illegible = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
                if matches!(&other, ReceiveError::Broken(error) if is_illegible(error)) {
                    self.unsolicited.count_dropped(DroppedMessage::Unreadable);
                }
                FailureCause::from_error(other)
            }
        }
    }

    /// Returns why a channel has ended: a WebSocket ends with a message that is too long.
    pub(super) fn end_cause(&self) -> FailureCause {
        match self.oversized {
            Some(limit) => format!("the connection ended with a message of more than {limit} bytes").into(),
            None => "the server closed the connection".into(),
        }
    }
}

impl TransportFailure {
    fn malformed(problem: String) -> Self {
        Self { delivery: RequestDelivery::MaybeSent, kind: TransportFailureKind::Malformed(problem) }
    }

    pub(super) fn too_long(limit: usize) -> Self {
        Self { delivery: RequestDelivery::MaybeSent, kind: TransportFailureKind::TooLong { limit } }
    }
}
