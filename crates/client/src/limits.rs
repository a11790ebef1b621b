use std::time::Duration;

use trunkline_protocol::envelope::MessageLimits;

/// The bounds within which a client deals with a server. Each field says its default and what it costs.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// The largest message. Default 4 MiB; a server can make us hold this much once per connection and running call.
    pub message_bytes: usize,
    /// How deep a message may nest, and how many a batch may hold. Default 64 and 32. A response that nests deeper is still
    /// the answer to its request: a list leaves out the items that do, and any other result is an error beyond 127 levels.
    pub bounds: MessageLimits,
    /// Requests at one time on one connection. Default 1,024; beyond it they wait.
    pub in_flight: usize,
    /// Bytes that may wait for a server to read before requests wait with us. Default 256 KiB.
    pub queued_bytes: usize,
    /// Messages that make no sense before a server is given up. Default 1,000.
    pub malformed_messages: usize,
    /// How long a server may take to say whether it is of the modern era. Default 10 s.
    pub probe_timeout: Duration,
    /// How long the handshake may take, from its own beginning. Default 30 s.
    pub handshake_timeout: Duration,
    /// How long a server may be silent within a request. Default 60 s; progress begins it anew, and while a question is
    /// open it does not run.
    pub request_timeout: Duration,
    /// How long a request may take in all, however much progress it reports, and a list with all its pages. Default 10
    /// minutes, the time that questions are open not counted.
    pub max_total_timeout: Duration,
    /// How long an orderly end may take. Default 5 s.
    pub close_timeout: Duration,
    /// How often one call may be interrupted by questions. Default 10.
    pub input_rounds: usize,
    /// How long a step waits for further questions after the first. Default 25 ms.
    pub input_batch_window: Duration,
    /// The pages that are read of one list. Default 1,000; a list that goes on is an error.
    pub pages: usize,
    /// The items that are read of one list. Default 100,000; a list that goes on is an error.
    pub items: usize,
    /// The bytes that the pages of one list have together. Default 64 MiB; a list that goes on is an error.
    pub list_bytes: usize,
    /// The results that are kept while the server allows it. Default 256; beyond it the oldest goes.
    pub cache_entries: usize,
    /// The bytes that the kept results have together. Default 16 MiB.
    pub cache_bytes: usize,
    /// Questions outside of any call that are answered at one time. Default 16; beyond it they are refused.
    pub session_requests: usize,
    /// How long it is waited before a stream of changes that ended is opened again. Default 1 s, doubling to a minute.
    pub reopen_delay: Duration,
}

impl ClientLimits {
    /// Lets a server be silent for so long, and lets nothing end sooner because of another bound.
    #[must_use]
    pub fn with_request_timeout(self, silent_for: Duration) -> Self {
        Self {
            request_timeout: silent_for,
            max_total_timeout: self.max_total_timeout.max(silent_for),
            handshake_timeout: silent_for,
            probe_timeout: self.probe_timeout.min(silent_for),
            ..self
        }
    }
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            bounds: MessageLimits::default(),
            in_flight: 1024,
            queued_bytes: 256 << 10,
            malformed_messages: 1000,
            probe_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            max_total_timeout: Duration::from_secs(600),
            close_timeout: Duration::from_secs(5),
            input_rounds: 10,
            input_batch_window: Duration::from_millis(25),
            pages: 1000,
            items: 100_000,
            list_bytes: 64 << 20,
            cache_entries: 256,
            cache_bytes: 16 << 20,
            session_requests: 16,
            reopen_delay: Duration::from_secs(1),
        }
    }
}
