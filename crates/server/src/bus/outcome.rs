//! Counters of the messages between processes.

use std::sync::atomic::{AtomicU64, Ordering};

use super::message::BusMessage;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusMessageOutcome {
    Sent,
    Received,
    /// The process that it was for has ended.
    ProcessGone,
    /// It could not be sent, or not be read.
    Failed,
}

impl BusMessageOutcome {
    const ALL: [Self; 4] = [Self::Sent, Self::Received, Self::ProcessGone, Self::Failed];

    const fn label(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::ProcessGone => "process_gone",
            Self::Failed => "failed",
        }
    }
}

static MESSAGES: [[AtomicU64; BusMessageOutcome::ALL.len()]; BusMessage::KINDS.len()] =
    [const { [const { AtomicU64::new(0) }; BusMessageOutcome::ALL.len()] }; BusMessage::KINDS.len()];

/// Counts a message of a kind, which is a place in [`BusMessage::KINDS`].
pub(super) fn count(kind: usize, outcome: BusMessageOutcome) {
    if let Some(counter) = MESSAGES.get(kind).and_then(|outcomes| outcomes.get(outcome as usize)) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the kinds and outcomes of messages with their numbers, as far as there were any.
pub(crate) fn bus_messages() -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    BusMessage::KINDS.into_iter().zip(&MESSAGES).flat_map(|(kind, outcomes)| {
        BusMessageOutcome::ALL.into_iter().zip(outcomes).filter_map(move |(outcome, count)| {
            let count = count.load(Ordering::Relaxed);
            (count > 0).then_some((kind, outcome.label(), count))
        })
    })
}
