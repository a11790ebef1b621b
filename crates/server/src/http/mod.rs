//! Streamable HTTP: one endpoint for both eras, as a service that any HTTP server can mount; and next to it HTTP+SSE
//! and WebSocket.
//!
//! # Invariants
//!
//! - `Host` and `Origin` allow only loopback names by default: `hosts_are_loopback_names_by_default`,
//!   `origins_are_loopback_ones_by_default`.
//! - A bearer token determines the principal: `bearer_tokens_name_their_principal`.
//! - HTTP+SSE and WebSocket channels are opened only from allowed origins, and used only by the principal that opened
//!   them: `pages_and_names_from_elsewhere_reach_no_channel`,
//!   `a_channel_is_opened_and_written_to_by_its_own_principal_alone`.
//! - Closing such a channel cancels its calls: `a_client_that_leaves_a_channel_cancels_its_calls`.
//! - A cookie is never a credential; a value that the server did not issue, or issued to another principal, is replaced:
//!   `a_cookie_is_no_credential_and_is_kept_from_scripts_and_other_sites`,
//!   `a_cookie_names_the_same_bag_again_for_its_own_principal_only`.
//! - A handler's refusal is an ordinary response, not an HTTP failure:
//!   `a_refusal_of_a_handler_is_an_ordinary_answer_over_http`.

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
