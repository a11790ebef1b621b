use std::time::Duration;

/// The bounds within which a hub deals with its servers. Each field says its default and what it costs.
#[derive(Clone, Debug)]
pub struct HubLimits {
    /// How long a list waits for servers that have not listed what they have for its caller. Default 2 s; a server that takes
    /// longer is left out until it is ready, and then clients are notified. Servers that are added later delay no list.
    pub first_list_timeout: Duration,
    /// How long a call waits for its server to list what it has, if it never did. Default 15 s; then the call fails.
    pub first_call_timeout: Duration,
    /// How long changes of lists are gathered before clients are notified of them. Default 250 ms.
    pub announce_delay: Duration,
    /// How long a server may take to list what it offers. Default 30 s.
    pub listing_timeout: Duration,
    /// The largest message of a server. Default 4 MiB; a server can make us hold this much once per connection and call.
    pub message_bytes: usize,
    /// The items that one server may list of one kind. Default 10,000; a longer list is not taken.
    pub list_items: usize,
    /// The bytes that one list of a server may have. Default 16 MiB; a larger list is not taken.
    pub list_bytes: usize,
    /// The bytes that one item of a list may have. Default 1 MiB; a larger item is left out.
    pub item_bytes: usize,
    /// The bytes that one text of an item, such as its description, may have. Default 64 KiB; a longer text is cut.
    pub text_bytes: usize,
    /// The time between two looks at the lists of a server that says that they change all the time. Default 250 ms.
    pub refresh_interval: Duration,
    /// Connections, and so processes, of one server. Default 32; beyond it one that is unused is ended, of the client that
    /// has most of them, and if all are in use, calls that need another wait, each client in turn, for
    /// [`HubLimits::connection_wait_timeout`]. Those who only watch resources have half of them.
    pub connections_per_server: usize,
    /// How long a call that may be asked something waits for a connection which carries another such call, before a further
    /// one is made for it. Default 500 ms.
    pub grow_delay: Duration,
    /// How long a program, or the connection of one caller alone, may be unused before it is ended, unless its configuration
    /// says. Default 10 minutes.
    pub idle_timeout: Duration,
    /// How long it is waited before a server that failed is started again. Default 250 ms, doubling, with a random part.
    pub restart_delay: Duration,
    /// The longest such time. Default 60 s.
    pub max_restart_delay: Duration,
    /// How long a server has to be well before its failures are forgotten. Default 60 s.
    pub healthy_after: Duration,
    /// How long a call waits for a server that is about to be started again, or for a connection that is in use. Default 5 s;
    /// beyond it the call is refused.
    pub connection_wait_timeout: Duration,
    /// How long calls of a server that is removed, replaced or disconnected may take to finish. Default 3 s.
    pub drain_timeout: Duration,
    /// How long a server that asks for roots waits for those of its caller. Default 10 s; then there are none.
    pub roots_timeout: Duration,
    /// How long a server may take to say whether it tells of a resource's changes. Default 10 s.
    pub subscribe_timeout: Duration,
    /// How long a resource that nobody watches any more is still watched. Default 10 s.
    pub unsubscribe_delay: Duration,
    /// The addresses that servers pointed at in results and that are on no list. Default 4,096; beyond it the oldest of the
    /// server with the most is forgotten, and cannot be read unless it is on a list.
    pub remembered_links: usize,
    /// How often one call may be interrupted by questions that travel through the caller. Default 32.
    pub input_rounds: u16,
    /// How often one call may ask to be asked again without a question. Default 600.
    pub poll_rounds: u16,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self {
            first_list_timeout: Duration::from_secs(2),
            first_call_timeout: Duration::from_secs(15),
            announce_delay: Duration::from_millis(250),
            listing_timeout: Duration::from_secs(30),
            message_bytes: 4 << 20,
            list_items: 10_000,
            list_bytes: 16 << 20,
            item_bytes: 1 << 20,
            text_bytes: 64 << 10,
            refresh_interval: Duration::from_millis(250),
            connections_per_server: 32,
            grow_delay: Duration::from_millis(500),
            idle_timeout: Duration::from_secs(600),
            restart_delay: Duration::from_millis(250),
            max_restart_delay: Duration::from_secs(60),
            healthy_after: Duration::from_secs(60),
            connection_wait_timeout: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(3),
            roots_timeout: Duration::from_secs(10),
            subscribe_timeout: Duration::from_secs(10),
            unsubscribe_delay: Duration::from_secs(10),
            remembered_links: 4096,
            input_rounds: 32,
            poll_rounds: 600,
        }
    }
}
