use std::collections::VecDeque;

use super::note::Note;
use crate::metrics::process::{self, NoticeKind};

/// The notices of one call that wait to be sent to its client.
const MOST_NOTICES: usize = 64;

/// The bytes of those that wait, as far as there is more than one.
const MOST_BYTES: usize = 256 * 1024;

/// What a call has said and its client was not sent yet, within two bounds. It never waits: beyond a bound progress is merged,
/// and the oldest log messages are dropped and counted.
#[derive(Debug)]
pub(super) struct NoteQueue {
    notes: VecDeque<Note>,
    bytes: usize,
}

impl NoteQueue {
    pub(super) const EMPTY: Self = Self { notes: VecDeque::new(), bytes: 0 };

    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<Note> {
        self.remove(0)
    }

    /// Adds progress. Where there is no room, or `merge` says so, it replaces the latest that waits.
    pub(super) fn push_progress(&mut self, note: Note, merge: bool) {
        let full = self.is_full(&note);
        let latest = self.notes.iter().rposition(|note| matches!(note, Note::Progress { .. }));
        match latest.filter(|_| full || merge).and_then(|at| self.notes.get_mut(at)) {
            Some(latest) => {
                self.bytes = self.bytes - latest.bytes() + note.bytes();
                *latest = note;
            }
            None if full => process::dropped_notice(NoticeKind::Progress),
            None => self.push(note),
        }
    }

    /// Adds a log message. Where there is no room, the oldest that wait are dropped; if there are none, the new one is.
    pub(super) fn push_log(&mut self, note: Note) {
        while self.is_full(&note) {
            process::dropped_notice(NoticeKind::Log);
            let oldest = self.notes.iter().position(|note| matches!(note, Note::Log { .. }));
            if oldest.and_then(|at| self.remove(at)).is_none() {
                return;
            }
        }
        self.push(note);
    }

    /// Reports whether a further notice is beyond a bound. However large it is, it has room alone.
    fn is_full(&self, note: &Note) -> bool {
        let too_large = !self.notes.is_empty() && self.bytes + note.bytes() > MOST_BYTES;
        self.notes.len() >= MOST_NOTICES || too_large
    }

    fn push(&mut self, note: Note) {
        self.bytes += note.bytes();
        self.notes.push_back(note);
    }

    fn remove(&mut self, at: usize) -> Option<Note> {
        let note = self.notes.remove(at)?;
        self.bytes -= note.bytes();
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::{Level, Raw};

    use super::*;

    fn log(number: usize, bytes: usize) -> Note {
        let data = Raw::from_text(&format!("{number}{}", "x".repeat(bytes)));
        Note::Log { level: Level::Info, logger: None, data }
    }

    fn progress(number: u32, bytes: usize) -> Note {
        Note::Progress { progress: number.into(), total: None, message: Some("p".repeat(bytes)) }
    }

    #[test]
    fn small_log_messages_are_bounded_by_number_and_the_newest_stay() {
        let mut queue = NoteQueue::EMPTY;
        for number in 0..10 * MOST_NOTICES {
            queue.push_log(log(number, 1));
        }
        assert_eq!(queue.notes.len(), MOST_NOTICES);
        let Some(Note::Log { data, .. }) = queue.notes.back() else { panic!("a log message is the last") };
        assert!(data.as_str().contains(&(10 * MOST_NOTICES - 1).to_string()));
    }

    #[test]
    fn large_log_messages_are_bounded_by_bytes_and_one_of_any_size_is_kept_alone() {
        let mut queue = NoteQueue::EMPTY;
        for number in 0..100 {
            queue.push_log(log(number, MOST_BYTES / 10));
            assert!(queue.bytes <= MOST_BYTES, "{}", queue.bytes);
        }
        assert!(queue.notes.len() >= 9, "{}", queue.notes.len());
        queue.push_log(log(100, 10 * MOST_BYTES));
        assert_eq!(queue.notes.len(), 1);
        while queue.pop().is_some() {}
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn progress_beyond_a_bound_replaces_the_latest_and_never_grows_the_queue() {
        let mut queue = NoteQueue::EMPTY;
        for number in 0..100 {
            queue.push_progress(progress(number, MOST_BYTES / 10), false);
            assert!(queue.bytes <= MOST_BYTES, "{}", queue.bytes);
        }
        let Some(Note::Progress { progress: last, .. }) = queue.notes.back() else { panic!("progress") };
        assert!((*last - 99.0).abs() < f64::EPSILON);
        let before = queue.notes.len();
        queue.push_progress(progress(100, 1), true);
        assert_eq!(queue.notes.len(), before, "it is merged where that is asked for");
    }
}
