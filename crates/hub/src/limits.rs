use std::time::Duration;

use trunkline_client::MessageBudget;

/// Limits of a hub towards its upstreams. Each field documents its default and its cost.
#[derive(Clone, Debug)]
pub struct HubLimits {
    /// How long a list request waits for upstreams that have not yet listed their items for its caller. Default 2 s;
    /// an upstream that takes longer is left out until it is ready, and then clients are notified. Upstreams added
    /// later delay no list.
    pub first_list_timeout: Duration,
    /// How long a call waits for an upstream that has never listed its items. Default 15 s; then the call fails.
    pub first_call_timeout: Duration,
    /// How long list changes are batched before clients are notified of them. Default 250 ms.
    pub announce_delay: Duration,
    /// Timeout for listing an upstream's items. Default 30 s.
    pub listing_timeout: Duration,
    /// The largest message of an upstream. Default 16 MiB; an upstream can make the hub buffer this much once per
    /// connection and call, within [`HubLimits::message_memory`].
    pub message_bytes: usize,
    /// The memory for messages above 64 KiB that are being received from all upstreams together. Default 256 MiB; a
    /// connection that needs more is closed.
    pub message_memory: MessageBudget,
    /// The items that one server may list of one kind. Default 10,000; a longer list is rejected.
    pub list_items: usize,
    /// The bytes that one list of a server may have. Default 16 MiB; a larger list is rejected.
    pub list_bytes: usize,
    /// The bytes that the listings of one server may have, for all users, eras and sets of capabilities together. Default
    /// 64 MiB; beyond it the least recently used listing is dropped, or a list is rejected.
    pub listing_bytes: usize,
    /// The bytes that the listings of all servers may have together; those of a server up to 256 KiB are not counted.
    /// Default 256 MiB; beyond it the least recently used listings of the server that lists are dropped, or its lists
    /// are left out, and fetched again with backoff.
    pub all_listing_bytes: usize,
    /// The bytes that one item of a list may have. Default 1 MiB; a larger item is left out.
    pub item_bytes: usize,
    /// The bytes that one text of an item, such as its description, may have. Default 64 KiB; a longer text is
    /// truncated.
    pub text_bytes: usize,
    /// The minimum interval between two refreshes of the lists of an upstream that sends `list_changed` continuously.
    /// Default 250 ms.
    pub refresh_interval: Duration,
    /// Connections, and so processes, of one upstream. Default 32; beyond it an unused connection of the client with
    /// the most connections is evicted. If all are in use, calls that need another wait for
    /// [`HubLimits::connection_wait_timeout`], served round-robin by client. Resource subscriptions alone may use
    /// half of them.
    pub connections_per_server: usize,
    /// How long a call that may require input waits for a connection in use by another such call, before a further
    /// connection is opened for it. Default 500 ms.
    pub extra_connection_delay: Duration,
    /// Idle timeout of a program, or of a connection private to one caller, unless configured per server. Default 10
    /// minutes.
    pub idle_timeout: Duration,
    /// The first backoff delay before a failed upstream is restarted. Default 250 ms, doubling, with jitter.
    pub restart_delay: Duration,
    /// The longest backoff delay. Default 60 s.
    pub max_restart_delay: Duration,
    /// How long a connection has to stay open before the failure count is reset. Default 60 s.
    pub backoff_reset_after: Duration,
    /// How long a call waits for an upstream that is about to be restarted, or for a free connection. Default 5 s;
    /// then the call is refused.
    pub connection_wait_timeout: Duration,
    /// How long running calls may take to finish when their upstream is removed, replaced or disconnected. Default 3
    /// s.
    pub drain_timeout: Duration,
    /// Timeout of an upstream's `roots/list` request, in which the caller's roots are fetched. Default 10 s; then the
    /// list is empty.
    pub roots_timeout: Duration,
    /// Timeout of an upstream's response to a resource subscription. Default 10 s.
    pub subscribe_timeout: Duration,
    /// How long a resource stays subscribed after its last subscriber has left. Default 10 s.
    pub unsubscribe_delay: Duration,
    /// Resource links of results that are on no list. Default 4,096; beyond it the oldest link of the server with the
    /// most is evicted, and that resource cannot be read unless it is listed.
    pub remembered_links: usize,
    /// The input rounds of one call in which the caller holds the request state. Default 32.
    pub input_rounds: u16,
    /// The rounds of one call without an input request, in which the upstream only wants to be polled again. Default
    /// 600.
    pub poll_rounds: u16,
    /// The events that the [event stream](crate::events) keeps. Default 50,000; beyond it the oldest is dropped. Without a reader
    /// a sixteenth is kept.
    pub events: usize,
    /// The bytes that count for the events that are kept. Default 32 MiB; beyond it the oldest are dropped.
    pub event_bytes: usize,
    /// The longest message that is kept whole in an event. Default 256 KiB; of a longer one only the beginning is.
    pub event_message_bytes: usize,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self {
            first_list_timeout: Duration::from_secs(2),
            first_call_timeout: Duration::from_secs(15),
            announce_delay: Duration::from_millis(250),
            listing_timeout: Duration::from_secs(30),
            message_bytes: 16 << 20,
            message_memory: MessageBudget::default(),
            list_items: 10_000,
            list_bytes: 16 << 20,
            listing_bytes: 64 << 20,
            all_listing_bytes: 256 << 20,
            item_bytes: 1 << 20,
            text_bytes: 64 << 10,
            refresh_interval: Duration::from_millis(250),
            connections_per_server: 32,
            extra_connection_delay: Duration::from_millis(500),
            idle_timeout: Duration::from_secs(600),
            restart_delay: Duration::from_millis(250),
            max_restart_delay: Duration::from_secs(60),
            backoff_reset_after: Duration::from_secs(60),
            connection_wait_timeout: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(3),
            roots_timeout: Duration::from_secs(10),
            subscribe_timeout: Duration::from_secs(10),
            unsubscribe_delay: Duration::from_secs(10),
            remembered_links: 4096,
            input_rounds: 32,
            poll_rounds: 600,
            events: 50_000,
            event_bytes: 32 << 20,
            event_message_bytes: 256 << 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: usize) -> String {
        if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
    }

    fn time(duration: Duration) -> String {
        match (duration.as_secs(), duration.subsec_millis()) {
            (0, millis) => format!("{millis} ms"),
            (minutes, 0) if minutes > 60 && minutes.is_multiple_of(60) => format!("{} min", minutes / 60),
            (seconds, _) => format!("{seconds} s"),
        }
    }

    fn count(number: impl Into<u64>) -> String {
        match number.into() {
            number if number < 1000 => number.to_string(),
            number => format!("{},{:03}", number / 1000, number % 1000),
        }
    }

    /// Makes a pair of a field's name and its default as `docs/limits.md` has it, for each field.
    macro_rules! rows {
        ($($field:ident: $write:expr),* $(,)?) => {{
            // No `..`: a field that is added must be added to the document too.
            let HubLimits { $($field),* } = HubLimits::default();
            [$((stringify!($field), $write($field))),*]
        }};
    }

    #[test]
    fn every_default_of_the_hub_is_in_the_document_of_limits() {
        let document = include_str!("../../../docs/limits.md");
        let rows = rows! {
            first_list_timeout: time,
            first_call_timeout: time,
            announce_delay: time,
            listing_timeout: time,
            message_bytes: size,
            message_memory: |memory: MessageBudget| size(memory.limit()),
            list_items: |items| count(items as u64),
            list_bytes: size,
            listing_bytes: size,
            all_listing_bytes: size,
            item_bytes: size,
            text_bytes: size,
            refresh_interval: time,
            connections_per_server: |connections| count(connections as u64),
            extra_connection_delay: time,
            idle_timeout: time,
            restart_delay: |delay| format!("{}, doubling", time(delay)),
            max_restart_delay: time,
            backoff_reset_after: time,
            connection_wait_timeout: time,
            drain_timeout: time,
            roots_timeout: time,
            subscribe_timeout: time,
            unsubscribe_delay: time,
            remembered_links: |links| count(links as u64),
            input_rounds: count,
            poll_rounds: count,
            events: |events| count(events as u64),
            event_bytes: size,
            event_message_bytes: size,
        };
        for (field, default) in rows {
            let name = format!("| `HubLimits::{field}` ");
            let row = document.lines().find(|line| line.starts_with(&name));
            let value = row.and_then(|row| row.split(" | ").nth(1));
            assert_eq!(value, Some(&*default), "docs/limits.md: {field}");
        }
    }
}
