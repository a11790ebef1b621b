//! Streamable HTTP: one endpoint for both eras, as a service that any HTTP server can mount; and beside it HTTP+SSE and
//! WebSocket.

mod accept;
mod arrival;
mod auth;
mod beside;
mod body;
mod carry;
mod connection;
mod cookie;
mod cors;
mod endpoint;
mod guard;
mod heads;
mod legacy;
mod listener;
mod modern;
mod options;
mod peer;
mod port_file;
mod refused;
#[cfg(feature = "axum")]
mod router;
mod sse_pair;
mod standing;
mod stream;
mod taken;
mod tls;
mod trail;
mod websocket;

pub use self::arrival::{Arrival, Responder};
pub use self::auth::{Anonymous, Authenticator, BearerTokens, BearerTokensError, Challenge};
pub use self::body::ResponseBody;
pub use self::connection::RequestBody;
pub use self::cookie::CookieSessions;
pub use self::endpoint::HttpService;
pub use self::guard::AllowList;
pub use self::listener::{Drained, serve};
pub use self::options::{HttpOptions, SsePaths};
pub use self::peer::PeerInfo;
pub use self::port_file::PortFile;
pub use self::tls::{Tls, TlsError};
