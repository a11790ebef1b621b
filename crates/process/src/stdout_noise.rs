/// The lines of a server's standard output that were no messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdoutNoise {
    /// The number of lines.
    pub lines: u64,
    /// The beginning of the first line.
    pub first: Option<String>,
}

impl StdoutNoise {
    /// The most characters of the first line that are stored.
    const MAX_CHARACTERS: usize = 200;

    pub(super) fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.first.get_or_insert_with(|| {
            String::from_utf8_lossy(line).chars().take(Self::MAX_CHARACTERS).collect()
        });
    }
}
