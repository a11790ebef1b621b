//! Streamable HTTP: one endpoint for both eras, as a service that any HTTP server can mount; and next to it HTTP+SSE
//! and WebSocket.
//!
//! # Invariants
//!
//! - `Host` and `Origin` allow only loopback names by default: `allowed_hosts_default_to_loopback_names`,
//!   `allowed_origins_default_to_loopback`.
//! - A bearer token determines the principal: `bearer_token_authenticates_its_principal`.
//! - HTTP+SSE and WebSocket channels are opened only from allowed origins, and used only by the principal that opened
//!   them: `disallowed_hosts_and_origins_reach_no_channel`,
//!   `channel_is_opened_and_posted_to_only_by_its_own_principal`.
//! - Closing such a channel cancels its calls: `client_disconnecting_from_a_channel_cancels_its_calls`.
//! - A cookie is never a credential; a value that the server did not issue, or issued to another principal, is replaced:
//!   `session_cookie_is_http_only_same_site_and_no_credential`,
//!   `session_cookie_restores_state_only_for_its_own_principal`.
//! - A handler's refusal is an ordinary response, not an HTTP failure:
//!   `handler_refusal_is_http_status_200`.

mod accept;
mod allow_list;
mod auth;
mod body;
mod call_exchange;
mod connection_admission;
mod cookie;
mod cors;
mod endpoint;
mod legacy;
mod legacy_sse;
mod listener;
mod lost_call;
mod mcp_headers;
mod modern;
mod open_channels;
mod options;
mod other_routes;
mod peer;
mod port_file;
mod post_message;
mod protected_resource;
mod refusal_response;
mod request_tracing;
mod reserved_connections;
pub mod resource_server;
mod resumed_stream;
#[cfg(feature = "axum")]
mod router;
mod session_admin;
mod socket;
mod standalone;
mod stream;
mod tls;
mod websocket;
mod well_known;

pub use self::allow_list::AllowList;
pub use self::auth::{
    AnonymousAuthenticator, AuthChallenge, AuthRefusal, Authenticated, AuthenticationResult, Authenticator,
    BearerTokens, BearerTokensError, TokenChanges, bearer_token,
};
pub use self::body::McpResponseBody;
pub use self::cookie::CookieSessions;
pub use self::endpoint::HttpService;
pub use self::listener::{DrainOutcome, serve};
pub use self::options::{HttpServerOptions, SsePaths};
pub use self::peer::PeerInfo;
pub use self::port_file::PortFile;
pub use self::protected_resource::{ProtectedResource, ProtectedResourceError};
pub use self::tls::{ServerTls, ServerTlsError};
pub use crate::edge::legacy::{SessionSummary, SessionTransport};
pub use trunkline_http1::server::{IncomingRequest, RemoteAddress, RequestBody, Service};
