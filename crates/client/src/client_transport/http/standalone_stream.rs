//! The stream for what belongs to no request: changes, log messages, and questions at any time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_protocol::{Message, Method};

use super::resumption::StreamResumption;
use super::shared::{HttpShared, StreamUnavailable};
use super::sse_messages::{SseItem, SseMessages};
use crate::client_transport::TransportFailureKind;

/// How often in a row the stream may fail before somebody should know.
const WARN_AFTER_FAILURES: u32 = 10;

/// A stream that says nothing and ends sooner than this was none.
const MIN_STREAM_DURATION: Duration = Duration::from_secs(5);

/// Starts the task that drives the stream, once the handshake is over.
pub(super) fn start_stream(shared: &Arc<HttpShared>) {
    let driven = shared.clone();
    shared.start_standalone(|settle| tokio::spawn(run_stream(driven, settle)).abort_handle());
}

/// Keeps the stream open for as long as the server offers it, and tries to have it again for as long as there is a session:
/// whoever watches would else wait in vain.
async fn run_stream(shared: Arc<HttpShared>, settle: watch::Sender<bool>) {
    let mut resumption = StreamResumption::default();
    let session = shared.session_number();
    // Something may have been said that nobody heard; it is told once there is somebody to ask what it was.
    let mut missed = false;
    loop {
        let opened = Instant::now();
        let stream = shared.open_stream(session, resumption.last_event_id()).await;
        settle.send_replace(true);
        let failed = match stream {
            Ok(events) => {
                if std::mem::take(&mut missed) {
                    shared.unsolicited.send_interrupted();
                }
                let said = read_events(&shared, events, &mut resumption).await;
                missed = resumption.last_event_id().is_none();
                !said && opened.elapsed() < MIN_STREAM_DURATION
            }
            Err(StreamUnavailable::Retry(how)) => {
                tracing::debug!(how, "there is no standing stream");
                true
            }
            Err(StreamUnavailable::Never(loss)) => match loss.kind {
                // What the last event was is not known any more; what came after it is lost.
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
            tracing::warn!("the server's stream of changes fails again and again");
        }
        tokio::time::sleep(resumption.retry_delay()).await;
    }
}

/// Gives everything that comes aside; reports whether anything came before the end.
async fn read_events(
    shared: &Arc<HttpShared>,
    mut events: SseMessages,
    resumption: &mut StreamResumption,
) -> bool {
    let mut said = false;
    let mut noise = 0;
    loop {
        match events.next(resumption).await {
            SseItem::Message(message) => {
                said = true;
                receive(shared, message);
            }
            SseItem::Malformed(unreadable) => {
                tracing::debug!(problem = %unreadable.refusal, "skipped what is no message");
                noise += 1;
                if noise > shared.limits.malformed_messages {
                    return false;
                }
            }
            SseItem::TooLong(limit) => {
                tracing::warn!(limit, "a message of the server is too long and was skipped");
                shared.unsolicited.send_interrupted();
            }
            SseItem::End(_) => return said,
        }
    }
}

fn receive(shared: &Arc<HttpShared>, message: Message) {
    match message {
        Message::Notification(notice) => shared.unsolicited.send_notification(notice),
        Message::Request(request) => {
            if request.method == Method::Ping.as_str() {
                shared.answer_ping(&request.id);
            } else if let Err(refused) = shared.unsolicited.send_request(request) {
                shared.reject_request(&refused.id);
            }
        }
        Message::Response(response) => {
            tracing::debug!(id = ?response.id, "dropped a response that nobody waits for");
        }
    }
}
