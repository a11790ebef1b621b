//! Reports of what a server sent that was of no use: log lines with its name, and counts.

use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_client::DroppedMessage;
use trunkline_config::ServerName;
use trunkline_server::UpstreamItem;
use trunkline_transport::process::{OutputLine, OutputStream};

use crate::events::HubEvents;

/// Returns the callback for lines of a program's standard output that are no messages: the first one is a warning, so
/// that a program which prints them is noticed, and the others cannot flood the log. Lines of standard error go to the
/// event stream.
pub(super) fn log_stray_lines(
    server: &ServerName,
    events: &HubEvents,
) -> impl Fn(&OutputLine<'_>) + Send + Sync + 'static {
    /// The most characters of a line in the log.
    const MAX_CHARACTERS: usize = 120;
    let (server, events, has_warned) = (server.clone(), events.clone(), AtomicBool::new(false));
    move |line| {
        if line.stream != OutputStream::Stdout {
            events.stderr(&server, &line.text);
            return;
        }
        UpstreamItem::StrayLine.count(1);
        let text: String = line.text.chars().take(MAX_CHARACTERS).collect();
        if has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%server, line = ?text, "skipped a line of standard output that is not JSON-RPC");
        } else {
            tracing::warn!(%server, line = ?text, "skipped a line of standard output that is not JSON-RPC");
        }
    }
}

/// Returns the callback for messages that were dropped: they are counted, and logged where the operator can do something.
pub(super) fn report_dropped(server: &ServerName) -> impl Fn(DroppedMessage) + Send + Sync + 'static {
    let server = server.clone();
    move |kind| {
        let item = match kind {
            DroppedMessage::TooLong { limit } => {
                tracing::warn!(%server, limit, "skipped a message that is too long; `--max-upstream-message` raises the limit");
                UpstreamItem::MessageTooLong
            }
            DroppedMessage::OverBudget { limit } => {
                tracing::warn!(%server, limit, "closed a connection: large messages of all servers together exceed the limit");
                UpstreamItem::OverBudget
            }
            DroppedMessage::StreamFailing => {
                tracing::warn!(%server, "its stream of changes fails again and again; changes are missed");
                UpstreamItem::StreamFailing
            }
            DroppedMessage::Unmatched => UpstreamItem::ResponseUnmatched,
            DroppedMessage::Notification => UpstreamItem::NotificationDropped,
            DroppedMessage::Request => UpstreamItem::RequestRefused,
            DroppedMessage::Answer => UpstreamItem::AnswerDropped,
            DroppedMessage::Paused => UpstreamItem::Paused,
            _ => UpstreamItem::MessageUnreadable,
        };
        item.count(1);
    }
}
