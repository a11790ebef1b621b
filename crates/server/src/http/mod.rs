//! Streamable HTTP: one endpoint for both eras, as a service that any HTTP server can mount; and beside it HTTP+SSE and
//! WebSocket.

mod accept;
mod allow_list;
mod auth;
mod body;
mod call_exchange;
mod cookie;
mod cors;
mod endpoint;
mod legacy;
mod legacy_sse;
mod listener;
mod mcp_headers;
mod modern;
mod options;
mod other_routes;
mod peer;
mod port_file;
mod post_outcome;
mod refusal_response;
mod request_tracing;
#[cfg(feature = "axum")]
mod router;
mod socket;
mod standalone;
mod stream;
mod tls;
mod websocket;

pub use self::allow_list::AllowList;
pub use self::auth::{AnonymousAuthenticator, AuthChallenge, Authenticator, BearerTokens, BearerTokensError};
pub use self::body::McpResponseBody;
pub use self::cookie::CookieSessions;
pub use self::endpoint::HttpService;
pub use self::listener::{DrainOutcome, serve};
pub use self::options::{HttpServerOptions, SsePaths};
pub use self::peer::PeerInfo;
pub use self::port_file::PortFile;
pub use self::tls::{ServerTls, ServerTlsError};
pub use trunkline_http1::server::{IncomingRequest, RequestBody, Service};
