use std::sync::atomic::{AtomicU64, Ordering};

/// What was done about an item of an upstream server that could not be forwarded unchanged.
///
/// The kinds are the labels of the metric `trunkline_upstream_items_total`. A further kind is a variant here, a row
/// of [`UpstreamItem::ALL`] and a line in `docs/interceptors.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamItem {
    /// A listed item had a malformed member, which was replaced or dropped.
    Repaired,
    /// A listed item could not be used, and was left out.
    LeftOut,
    /// A text of a listed item was too long, and was cut.
    Truncated,
    /// A listed resource or template belongs to another server, and was left out.
    Shadowed,
    /// A result had a malformed member, which was replaced or dropped.
    ResultRepaired,
    /// A result could not be read or forwarded, and its call failed.
    ResultRejected,
    /// A message was not UTF-8, not JSON or not a message, and was dropped; the call that it answered failed.
    MessageUnreadable,
    /// A message was too long, and was dropped; the call that it answered failed.
    MessageTooLong,
    /// A response answered no running call, and was dropped.
    ResponseUnmatched,
    /// A notification was dropped, as the oldest of too many.
    NotificationDropped,
    /// A request was refused, as one of too many, or sent where there may be none.
    RequestRefused,
    /// A request outside of calls was declined, since no client could see it.
    RequestDeclined,
    /// The answer to a request was dropped, since too many wait to be sent.
    AnswerDropped,
    /// A connection or response was closed, since large messages of all servers together exceeded their memory.
    OverBudget,
    /// Messages came too fast, and the server was not read from until the second was over.
    Paused,
    /// The stream of changes failed again and again, so that changes are missed.
    StreamFailing,
    /// A template was not compared with a URI, since its server has used up what matching may cost.
    TemplateSkipped,
    /// A whole list could not be used: it failed, timed out, or had too many items or bytes.
    ListRefused,
    /// A tool or prompt did not get its name, since another has the same.
    NameClash,
    /// A tool that requires a task was left out.
    TaskRequired,
    /// A log message belonged to no one client, and was dropped.
    LogUnattributed,
    /// A log message had text that some clients cannot parse, which was replaced.
    MessageRepaired,
    /// A line of a program's standard output was no message, and was skipped.
    StrayLine,
}

static COUNTS: [AtomicU64; UpstreamItem::ALL.len()] = [const { AtomicU64::new(0) }; UpstreamItem::ALL.len()];

impl UpstreamItem {
    /// Every kind.
    pub const ALL: [Self; 23] = [
        Self::Repaired,
        Self::LeftOut,
        Self::Truncated,
        Self::Shadowed,
        Self::ResultRepaired,
        Self::ResultRejected,
        Self::MessageUnreadable,
        Self::MessageTooLong,
        Self::ResponseUnmatched,
        Self::NotificationDropped,
        Self::RequestRefused,
        Self::RequestDeclined,
        Self::AnswerDropped,
        Self::OverBudget,
        Self::Paused,
        Self::StreamFailing,
        Self::TemplateSkipped,
        Self::ListRefused,
        Self::NameClash,
        Self::TaskRequired,
        Self::LogUnattributed,
        Self::MessageRepaired,
        Self::StrayLine,
    ];

    /// Returns the label of the kind.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::LeftOut => "left_out",
            Self::Truncated => "truncated",
            Self::Shadowed => "shadowed",
            Self::ResultRepaired => "result_repaired",
            Self::ResultRejected => "result_rejected",
            Self::MessageUnreadable => "message_unreadable",
            Self::MessageTooLong => "message_too_long",
            Self::ResponseUnmatched => "response_unmatched",
            Self::NotificationDropped => "notice_dropped",
            Self::RequestRefused => "request_refused",
            Self::RequestDeclined => "request_declined",
            Self::AnswerDropped => "answer_dropped",
            Self::OverBudget => "over_budget",
            Self::Paused => "paused",
            Self::StreamFailing => "stream_failing",
            Self::TemplateSkipped => "template_skipped",
            Self::ListRefused => "list_refused",
            Self::NameClash => "name_clash",
            Self::TaskRequired => "task_required",
            Self::LogUnattributed => "log_unattributed",
            Self::MessageRepaired => "message_repaired",
            Self::StrayLine => "stray_line",
        }
    }

    /// Adds to the count of this kind.
    pub fn count(self, items: usize) {
        let index = Self::ALL.iter().position(|kind| *kind == self);
        if let Some(counter) = index.and_then(|index| COUNTS.get(index)) {
            counter.fetch_add(items.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Returns how many of this kind were counted in this process.
    pub fn counted(self) -> u64 {
        let index = Self::ALL.iter().position(|kind| *kind == self);
        index.and_then(|index| COUNTS.get(index)).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn every_upstream_item_kind_has_its_own_label() {
        for (at, kind) in UpstreamItem::ALL.into_iter().enumerate() {
            let before = kind.counted();
            kind.count(at + 1);
            assert_eq!(kind.counted(), before + at as u64 + 1);
            let sample =
                format!("trunkline_upstream_items_total{{kind=\"{}\"}} {}", kind.label(), kind.counted());
            let text = Metrics::new().text();
            assert!(text.lines().any(|line| line == sample), "{sample}: {text}");
        }
    }
}
