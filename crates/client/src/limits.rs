use std::time::Duration;

use trunkline_protocol::envelope::Bounds;

/// The bounds within which a client deals with a server. Each field says its default and what it costs.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest message. Default 4 MiB; a server can make us hold this much once per connection and running call.
    pub message_bytes: usize,
    /// How deep a message may nest, and how many a batch may hold. Default 64 and 32. A response that nests deeper is still
    /// the answer to its request: a list leaves out the items that do, and any other result is an error beyond 127 levels.
    pub bounds: Bounds,
    /// Requests at one time on one connection. Default 1,024; beyond it they wait.
    pub in_flight: usize,
    /// Bytes that may wait for a server to read before requests wait with us. Default 256 KiB.
    pub queued_bytes: usize,
    /// Messages that make no sense before a server is given up. Default 1,000.
    pub noise: usize,
    /// How long a server may take to say whether it is of the modern era. Default 10 s.
    pub probe_within: Duration,
    /// How long the handshake may take, from its own beginning. Default 30 s.
    pub connect_within: Duration,
    /// How long a server may be silent within a request. Default 60 s; progress begins it anew, and while a question is
    /// open it does not run.
    pub silent_for: Duration,
    /// How long a request may take in all, however much progress it reports, and a list with all its pages. Default 10
    /// minutes, the time that questions are open not counted.
    pub call_at_most: Duration,
    /// How long an orderly end may take. Default 5 s.
    pub close_within: Duration,
    /// How often one call may be interrupted by questions. Default 10.
    pub rounds: usize,
    /// How long a step waits for further questions after the first. Default 25 ms.
    pub siblings_within: Duration,
    /// The pages that are read of one list. Default 1,000; a list that goes on is an error.
    pub pages: usize,
    /// The items that are read of one list. Default 100,000; a list that goes on is an error.
    pub items: usize,
    /// The bytes that the pages of one list have together. Default 64 MiB; a list that goes on is an error.
    pub list_bytes: usize,
    /// The results that are kept while the server allows it. Default 256; beyond it the oldest goes.
    pub cached: usize,
    /// The bytes that the kept results have together. Default 16 MiB.
    pub cached_bytes: usize,
    /// Questions outside of any call that are answered at one time. Default 16; beyond it they are refused.
    pub session_questions: usize,
    /// How long it is waited before a stream of changes that ended is opened again. Default 1 s, doubling to a minute.
    pub reopen_after: Duration,
}

impl Limits {
    /// Lets a server be silent for so long, and lets nothing end sooner because of another bound.
    #[must_use]
    pub fn silent_for(self, silent_for: Duration) -> Self {
        Self {
            silent_for,
            call_at_most: self.call_at_most.max(silent_for),
            connect_within: silent_for,
            probe_within: self.probe_within.min(silent_for),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            bounds: Bounds::default(),
            in_flight: 1024,
            queued_bytes: 256 << 10,
            noise: 1000,
            probe_within: Duration::from_secs(10),
            connect_within: Duration::from_secs(30),
            silent_for: Duration::from_secs(60),
            call_at_most: Duration::from_secs(600),
            close_within: Duration::from_secs(5),
            rounds: 10,
            siblings_within: Duration::from_millis(25),
            pages: 1000,
            items: 100_000,
            list_bytes: 64 << 20,
            cached: 256,
            cached_bytes: 16 << 20,
            session_questions: 16,
            reopen_after: Duration::from_secs(1),
        }
    }
}
