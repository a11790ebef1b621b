use std::time::Duration;

use trunkline_protocol::envelope::MessageLimits;

use crate::message_budget::MessageBudget;

/// The limits of a client. Each field documents its default and its cost.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// The largest message. Default 4 MiB; a server can make the client hold this much once per connection and per
    /// running call.
    pub message_bytes: usize,
    /// The memory for messages above 64 KiB that are being received, of all clients with a clone of these limits.
    /// Default 256 MiB; a connection that needs more is closed.
    pub message_memory: MessageBudget,
    /// How deep a message may nest, and how many messages a batch may hold. Default 64 and 32. A response that
    /// nests deeper still completes its request: a list leaves out the items that do, and any other result is an
    /// error beyond 127 levels.
    pub bounds: MessageLimits,
    /// Concurrent requests on one connection. Default 1,024; beyond it they wait.
    pub in_flight: usize,
    /// Bytes in the write queue of a connection before further requests wait. Default 256 KiB.
    pub queued_bytes: usize,
    /// Malformed messages before the connection is closed. Default 1,000.
    pub malformed_messages: usize,
    /// Timeout of the probe for the modern era over HTTP, and over a channel to a server that is known to be modern.
    /// Default 10 s.
    pub probe_timeout: Duration,
    /// How long a client waits over a channel for the answer to the probe before it sends `initialize` too. Default
    /// 1 s: some legacy servers never answer a method that they do not know.
    pub initialize_delay: Duration,
    /// Timeout of the handshake. Default 30 s.
    pub handshake_timeout: Duration,
    /// Timeout of a request without progress. Default 60 s; progress restarts it, and it is paused while an input
    /// request is open.
    pub request_timeout: Duration,
    /// Total timeout of a request, however much progress it reports, and of a list with all its pages. Default 10
    /// minutes, not counting the time that input requests are open.
    pub max_total_timeout: Duration,
    /// Timeout of a graceful close. Default 5 s.
    pub close_timeout: Duration,
    /// Input rounds of one call. Default 10.
    pub input_rounds: usize,
    /// How long a step waits for further input requests after the first. Default 25 ms.
    pub input_batch_window: Duration,
    /// Pages of one list. Default 1,000; a longer list is an error.
    pub pages: usize,
    /// Items of one list. Default 100,000; a longer list is an error.
    pub items: usize,
    /// Total bytes of the pages of one list. Default 64 MiB; a longer list is an error.
    pub list_bytes: usize,
    /// Cached results. Default 256; beyond it the oldest is evicted.
    pub cache_entries: usize,
    /// Total bytes of the cached results. Default 16 MiB.
    pub cache_bytes: usize,
    /// Concurrent input requests outside of any call. Default 16; beyond it they are refused.
    pub session_requests: usize,
    /// The delay before a change stream that ended is reopened. Default 1 s, doubling to a minute.
    pub reopen_delay: Duration,
}

impl ClientLimits {
    /// Sets the request timeout, and raises or lowers the other timeouts so that none of them defeats it.
    #[must_use]
    pub fn with_request_timeout(self, silent_for: Duration) -> Self {
        Self {
            request_timeout: silent_for,
            max_total_timeout: self.max_total_timeout.max(silent_for),
            handshake_timeout: silent_for,
            probe_timeout: self.probe_timeout.min(silent_for),
            initialize_delay: self.initialize_delay.min(silent_for),
            ..self
        }
    }
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            message_memory: MessageBudget::default(),
            bounds: MessageLimits::default(),
            in_flight: 1024,
            queued_bytes: 256 << 10,
            malformed_messages: 1000,
            probe_timeout: Duration::from_secs(10),
            initialize_delay: Duration::from_secs(1),
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
