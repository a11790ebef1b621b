//! Reaching a server: names and addresses, proxies, TLS, and the handshake of WebSocket.

mod dialer;
mod error;
mod no_proxy;
mod proxy;
mod stream;
mod tcp;
mod tls;
mod tunnel;
mod websocket;

pub use self::dialer::{DialOptions, Dialer, Route};
pub(crate) use self::dialer::{Form, Tunnel};
pub use self::error::{DialError, Stage};
pub use self::proxy::{Proxies, ProxyError};
pub use self::stream::Stream;
pub use self::websocket::WebSocketError;
