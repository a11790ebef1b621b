use std::collections::VecDeque;

/// The end of a program's standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StderrTail {
    /// The text; invalid UTF-8 is replaced.
    pub text: String,
    /// The number of bytes before it, which were dropped.
    pub dropped: u64,
}

impl StderrTail {
    /// Returns at most this many of the last lines that are not blank.
    pub fn last_lines(&self, count: usize) -> String {
        let mut lines: Vec<&str> =
            self.text.lines().rev().filter(|line| !line.trim().is_empty()).take(count).collect();
        lines.reverse();
        lines.join("\n")
    }
}

/// A ring buffer of the last bytes of a stream.
#[derive(Debug)]
pub(super) struct StderrBuffer {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl StderrBuffer {
    /// The capacity in bytes.
    pub(super) const LIMIT: usize = 64 * 1024;

    pub(super) fn new() -> Self {
        Self { bytes: VecDeque::new(), dropped: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.get(bytes.len().saturating_sub(Self::LIMIT)..).unwrap_or_default();
        let excess = (self.bytes.len() + kept.len()).saturating_sub(Self::LIMIT);
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(kept);
        self.dropped += (bytes.len() - kept.len() + excess) as u64;
    }

    pub(super) fn snapshot(&self) -> StderrTail {
        let (front, back) = self.bytes.as_slices();
        let bytes = [front, back].concat();
        StderrTail { text: String::from_utf8_lossy(&bytes).into_owned(), dropped: self.dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_tail_has_the_last_bytes_for_any_chunking() {
        let all: Vec<u8> = (0..3 * StderrBuffer::LIMIT).map(|n| b'a' + (n % 26) as u8).collect();
        for piece in [1_000, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, all.len()] {
            let mut tail = StderrBuffer::new();
            for bytes in all.chunks(piece) {
                tail.push(bytes);
            }
            let snapshot = tail.snapshot();
            assert_eq!(snapshot.text.as_bytes(), &all[all.len() - StderrBuffer::LIMIT..], "{piece}");
            assert_eq!(snapshot.dropped, (all.len() - StderrBuffer::LIMIT) as u64, "{piece}");
            assert!(tail.bytes.capacity() <= 2 * StderrBuffer::LIMIT);
        }
    }

    #[test]
    fn last_lines_are_in_order_and_never_blank() {
        let tail = |text: &str| StderrTail { text: text.to_owned(), dropped: 0 };
        assert_eq!(tail("a\nb\n\n  \nc\n").last_lines(2), "b\nc");
        assert_eq!(tail("a").last_lines(2), "a");
        assert_eq!(tail("").last_lines(2), "");
    }
}
