use std::time::Duration;

use trunkline_protocol::envelope::MessageLimits;

/// The limits of a server. Each field documents its default and its cost.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// The largest message. Default 4 MiB; a peer can make us hold this much once per connection.
    pub message_bytes: usize,
    /// How deep a message may nest, and how many a batch may hold. Default 64 and 32.
    pub bounds: MessageLimits,
    /// Calls that run at one time, all callers together. Default 4,096; beyond it calls are refused.
    pub calls: usize,
    /// Calls of one principal that run at one time, or wait for input in a legacy session. Default 256; beyond it
    /// that principal's calls are refused. The anonymous callers of one host count as a principal, except on the
    /// loopback, where a proxy may stand before the server.
    pub calls_per_principal: usize,
    /// Calls that run at one time on one channel, those that wait for input not counted. Default 64; beyond it up to
    /// 1,024 further calls are queued, and those beyond that are refused.
    pub calls_per_channel: usize,
    /// Bytes that may wait for a channel's peer to read before we stop reading from it. Default 256 KiB.
    pub queued_bytes: usize,
    /// Bytes of memory that may be held for data that peers have not read, all peers together; a buffer counts
    /// completely until its last byte is written. Default 256 MiB; beyond it one of the peers with the most unread
    /// data is evicted.
    pub unread_bytes: usize,
    /// Bytes of requests that are being read or answered, all callers together; requests up to 64 KiB are not
    /// counted. Default 256 MiB; beyond it large requests are refused. One principal, or host of anonymous callers outside
    /// loopback, may hold as much as it leaves free.
    pub request_memory_bytes: usize,
    /// How long a suspended call waits for the request with the responses to its input requests. Default 10 minutes.
    pub suspended_for: Duration,
    /// Suspended calls of one principal. Default 16; beyond it that principal's oldest is evicted. The anonymous
    /// principal and the process are many callers in one, so that only [`ServerLimits::suspended`] holds for them.
    pub suspended_per_principal: usize,
    /// Suspended calls in all. Default 4,096; beyond it the oldest of the principal, or of the host of anonymous
    /// callers, with the most is evicted.
    pub suspended: usize,
    /// The largest continuation that travels in `requestState`. Default 16 KiB; a larger one is kept in memory.
    pub state_bytes: usize,
    /// How long a call may be silent before its response becomes a stream with keep-alive comments. Default 2 s; at
    /// most twice that where the rest of the request arrived late.
    pub stream_after: Duration,
    /// The time between keep-alive comments on a silent stream. Default 15 s.
    pub keep_alive: Duration,
    /// How long a request body may take to arrive, and a message posted to an HTTP+SSE stream to be enqueued; the
    /// same holds for a message above 64 KiB on a channel of a shared listener. Default 30 s.
    pub body_timeout: Duration,
    /// How long the head of a request may take to arrive once it has begun, and the first one of a connection in any
    /// case. Default 10 s.
    pub head_timeout: Duration,
    /// How long an HTTP+SSE stream or a WebSocket may be open without a first request: `initialize`, or a modern one.
    /// Default 30 s.
    pub first_request_timeout: Duration,
    /// The keep-alive timeout of a connection without a further request. Default 60 s.
    pub idle_timeout: Duration,
    /// How long a peer may read nothing of what is written to it before its connection is closed. Default 30 s; until
    /// then it holds its buffers and the call that it waits for.
    pub write_timeout: Duration,
    /// Connections at one time. Default 10,000; beyond it new ones wait to be accepted, or are refused if there are
    /// [`HttpServerOptions::probe_paths`](crate::http::HttpServerOptions::probe_paths).
    pub connections: usize,
    /// Connections of one address at one time; an IPv6 network of 64 bits counts as one address. Default 256. All
    /// clients on the loopback together may have seven eighths of [`ServerLimits::connections`].
    pub connections_per_address: usize,
    /// Connections beyond these limits at one time, each for one health check. Default 64; beyond it the oldest one of
    /// the address with the most is closed.
    pub reserved_connections: usize,
    /// Standalone GET streams of one legacy session. Default 4.
    pub streams_per_session: usize,
    /// Change subscriptions at one time, all callers together. Default 10,000; beyond it they are refused.
    pub subscriptions: usize,
    /// Change subscriptions of one principal. Default 16; the anonymous clients of one host outside loopback may have
    /// [`ServerLimits::connections_per_address`] of them.
    pub subscriptions_per_principal: usize,
    /// Bytes of the URIs of watched resources, all callers together, with 64 more for each. Default 64 MiB; beyond it
    /// no further resource is watched.
    pub watched_uri_bytes: usize,
    /// How long requests that were read before a channel ended may take to be answered; then they are refused.
    /// Default 5 s; over standard input [`StdioServer::grace`](crate::StdioServer::grace) replaces it.
    pub drain_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            bounds: MessageLimits::default(),
            calls: 4096,
            calls_per_principal: 256,
            calls_per_channel: 64,
            queued_bytes: 256 << 10,
            unread_bytes: 256 << 20,
            request_memory_bytes: 256 << 20,
            suspended_for: Duration::from_secs(600),
            suspended_per_principal: 16,
            suspended: 4096,
            state_bytes: 16 << 10,
            stream_after: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            body_timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(10),
            first_request_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            connections: 10_000,
            connections_per_address: 256,
            reserved_connections: 64,
            streams_per_session: 4,
            subscriptions: 10_000,
            subscriptions_per_principal: 16,
            watched_uri_bytes: 64 << 20,
            drain_timeout: Duration::from_secs(5),
        }
    }
}
