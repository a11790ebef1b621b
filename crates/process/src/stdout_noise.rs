/// What a server wrote to standard output beside the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdoutNoise {
    /// How many lines that was.
    pub lines: u64,
    /// The beginning of the first one.
    pub first: Option<String>,
}

impl StdoutNoise {
    /// How many characters of a line are kept.
    const MAX_CHARACTERS: usize = 200;

    pub(super) fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.first.get_or_insert_with(|| {
            String::from_utf8_lossy(line).chars().take(Self::MAX_CHARACTERS).collect()
        });
    }
}
