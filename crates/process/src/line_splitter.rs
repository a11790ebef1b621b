use memchr::memchr;

/// Splits a stream of bytes into lines as they arrive.
///
/// A line longer than the limit is returned once, truncated; the rest of it is dropped.
#[derive(Debug)]
pub(super) struct LineSplitter {
    partial: Vec<u8>,
    limit: usize,
}

impl LineSplitter {
    pub(super) fn new(limit: usize) -> Self {
        Self { partial: Vec::new(), limit }
    }

    /// Takes the next bytes, and calls `line` with every complete line.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (first, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.partial.is_empty() {
                line(trim(first.get(..self.limit).unwrap_or(first)));
            } else {
                self.buffer(first);
                line(trim(&self.partial));
                self.partial.clear();
            }
        }
        self.buffer(bytes);
    }

    /// Calls `line` with the last line, if the stream did not end with a newline.
    pub(super) fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            line(trim(&rest));
        }
    }

    fn buffer(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_splitter_yields_equal_lines_for_any_chunking() {
        let text = b"one\r\n\ntwo is too long for its limit\nthree\nlast";
        let expected = ["one", "", "two is t", "three", "last"];
        for piece in 1..=text.len() {
            let mut splitter = LineSplitter::new(8);
            let mut lines = Vec::new();
            for bytes in text.chunks(piece) {
                splitter.push(bytes, |line| lines.push(String::from_utf8(line.to_vec()).unwrap()));
            }
            splitter.finish(|line| lines.push(String::from_utf8(line.to_vec()).unwrap()));
            assert_eq!(lines, expected, "in pieces of {piece}");
        }
    }
}
