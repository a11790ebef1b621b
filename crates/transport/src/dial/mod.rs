//! Outgoing connections: name resolution, proxies, TLS, and the WebSocket handshake.

mod address_policy;
mod dialer;
mod error;
mod no_proxy;
mod proxy;
mod stream;
mod tcp;
mod tls;
mod tunnel;
mod websocket;

pub use self::address_policy::AddressPolicy;
pub use self::dialer::{ConnectionInfo, DialOptions, Dialer};
pub use self::error::{DialError, DialStage};
pub use self::proxy::{ProxyError, ProxySettings};
pub use self::stream::DialedStream;
pub use self::websocket::WebSocketError;
