//! Channels: bidirectional transports of protocol messages.
//!
//! [`Channel`] is the trait that third-party transports implement. The crate knows bytes and processes, and no
//! protocol method.
//!
//! # Invariants
//!
//! - A WebSocket connection stays open while its peer is alive, even if this side does not read:
//!   `unread_websocket_messages_do_not_count_as_missed_pongs`.
//! - Pongs queued for a peer that does not read are bounded, and the peer is not read from meanwhile:
//!   `pongs_for_a_peer_that_does_not_read_are_bounded`.
//! - A WebSocket with a dead peer is closed: `websocket_breaks_after_two_missed_pongs`.

mod channel;
mod counting_stream;
#[cfg(feature = "dial")]
pub mod dial;
mod frame_split;
#[cfg(feature = "dial")]
pub mod http;
mod line_channel;
mod memory;
mod mock;
pub mod process;
mod secret;
mod stdio;
mod target;
mod websocket;
mod wire_observer;

pub use self::channel::{Channel, ReceiveError};
pub use self::line_channel::LineChannel;
pub use self::memory::{MemoryChannel, memory};
pub use self::mock::{MockChannel, MockPeer, mock};
pub use self::process::{Command, CommandLineError};
pub use self::secret::Secret;
pub use self::stdio::{StdioChannel, stdio};
pub use self::target::{ChannelOpener, Target, TargetError};
pub use self::websocket::{CloseReason, WebSocketChannel, WebSocketRole, accept_key};
pub use self::wire_observer::{WireDirection, WireMessage, WireObserver};
pub use trunkline_http1::{Url, UrlError, UrlScheme};
