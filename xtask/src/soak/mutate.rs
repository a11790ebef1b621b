//! Messages that were right once, changed at random and always in the same way for the same seed.

/// A generator of numbers that is small, quick and good enough to choose where to break a message.
#[derive(Debug)]
pub(crate) struct RandomSource(u64);

impl RandomSource {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Gives a number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % limit.max(1)
    }
}

/// Pieces that mean something to a parser.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"null",
    b"true",
    b"-",
    b"1e999",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\xf0\x9f\x98\x80",
    b"\0",
    b"\"id\":1,",
    b"\"method\":\"ping\",",
    b"\"_meta\":{},",
    b"[[[[[[[[",
    b"{\"a\":",
    b"0.0",
    b"\"jsonrpc\":\"2.0\",",
    b"\"params\":[],",
    b"\"result\":{},",
];

/// Changes a message in one to four places.
pub(crate) fn mutate(message: &[u8], dice: &mut RandomSource) -> Vec<u8> {
    let mut bytes = message.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(16)).min(bytes.len());
        match dice.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let copy: Vec<u8> = bytes.iter().take(end).skip(at).copied().collect();
                drop(bytes.splice(at..at, copy));
            }
            2 => bytes.truncate(at),
            3 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
            _ => {
                let token = TOKENS.get(dice.below(TOKENS.len())).copied().unwrap_or_default();
                drop(bytes.splice(at..at, token.iter().copied()));
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_mutate_a_message_equally() {
        let broken = |seed| {
            mutate(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", &mut RandomSource::new(seed))
        };
        assert_eq!(broken(7), broken(7));
        let distinct: std::collections::BTreeSet<_> = (0..200).map(broken).collect();
        assert!(distinct.len() > 80, "{}", distinct.len());
    }
}
