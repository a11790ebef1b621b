//! The standalone SSE stream (`GET`) for messages that belong to no request: changes, log messages and input
//! requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_protocol::{Message, Method};

use super::resumption::StreamResumption;
use super::shared::{HttpShared, StreamUnavailable};
use super::sse_messages::{SseItem, SseMessages};
use crate::client_transport::TransportFailureKind;
use crate::dropped_message::DroppedMessage;

/// Consecutive failures before they are reported.
const WARN_AFTER_FAILURES: u32 = 10;

/// A stream without messages that ends sooner than this counts as a failure.
const MIN_STREAM_DURATION: Duration = Duration::from_secs(5);

/// Starts the task that drives the stream, after the handshake.
pub(super) fn start_stream(shared: &Arc<HttpShared>) {
    let driven = shared.clone();
    shared.start_standalone(|opened_sender| tokio::spawn(run_stream(driven, opened_sender)).abort_handle());
}

/// Keeps the stream open for as long as the server offers it, and reconnects for as long as there is a session:
/// otherwise subscribers would wait in vain.
async fn run_stream(shared: Arc<HttpShared>, opened_sender: watch::Sender<bool>) {
    let mut resumption = StreamResumption::default();
    let session = shared.session_number();
    // Messages may have been lost; subscribers are notified once the stream is open again, when they can refresh.
    let mut missed = false;
    loop {
        let opened = Instant::now();
        let stream = shared.open_stream(session, resumption.last_event_id()).await;
        opened_sender.send_replace(true);
        let failed = match stream {
            Ok(events) => {
                if std::mem::take(&mut missed) {
                    shared.unsolicited.send_interrupted();
                }
                let has_messages = read_events(&shared, events, &mut resumption).await;
                missed = resumption.last_event_id().is_none();
                !has_messages && opened.elapsed() < MIN_STREAM_DURATION
            }
            Err(StreamUnavailable::Retry(how)) => {
                tracing::debug!(how, "there is no standing stream");
                true
            }
            Err(StreamUnavailable::Never(failure)) => match failure.kind {
                // The server does not know the last event id any more; the messages after it are lost.
                TransportFailureKind::Status { status: 400, .. } if resumption.last_event_id().is_some() => {
                    missed = true;
                    resumption = StreamResumption::default();
                    true
                }
                TransportFailureKind::SessionGone => {
                    shared.unsolicited.send_session_lost();
                    return;
                }
                TransportFailureKind::Status { status: 405, .. } if !missed => return,
                kind => {
                    tracing::debug!(?kind, "there will be no standing stream");
                    shared.unsolicited.send_interrupted();
                    return;
                }
            },
        };
        if failed && resumption.record_failure() == WARN_AFTER_FAILURES {
            shared.unsolicited.count_dropped(DroppedMessage::StreamFailing);
        }
        tokio::time::sleep(resumption.retry_delay()).await;
    }
}

/// Forwards all messages to the session listener; reports whether there were any before the end.
async fn read_events(
    shared: &Arc<HttpShared>,
    mut events: SseMessages,
    resumption: &mut StreamResumption,
) -> bool {
    let mut has_messages = false;
    let mut malformed_count = 0;
    loop {
        match events.next(resumption).await {
            SseItem::Message(message) => {
                has_messages = true;
                receive(shared, message);
            }
            SseItem::Malformed(unreadable, _) => {
                shared.unsolicited.count_dropped(DroppedMessage::Unreadable);
                tracing::debug!(problem = %unreadable.refusal, "skipped a malformed message");
                malformed_count += 1;
                if malformed_count > shared.limits.malformed_messages {
                    return false;
                }
            }
            SseItem::TooLong(limit) => {
                shared.unsolicited.count_dropped(DroppedMessage::TooLong { limit });
                shared.unsolicited.send_interrupted();
            }
            SseItem::OutOfMemory(exceeded) => {
                shared.unsolicited.count_dropped(exceeded.into());
                return has_messages;
            }
            SseItem::Paused => shared.unsolicited.count_dropped(DroppedMessage::Paused),
            SseItem::End(_) => return has_messages,
        }
    }
}

fn receive(shared: &Arc<HttpShared>, message: Message) {
    match message {
        Message::Notification(notification) => shared.unsolicited.send_notification(notification),
        Message::Request(request) => {
            if request.method == Method::Ping.as_str() {
                shared.answer_ping(&request.id);
            } else if let Err(refused) = shared.unsolicited.send_request(request) {
                shared.reject_request(&refused.id);
            }
        }
        Message::Response(response) => {
            shared.unsolicited.count_dropped(DroppedMessage::Unmatched);
            tracing::debug!(id = ?response.id, "dropped a response without a pending request");
        }
    }
}
