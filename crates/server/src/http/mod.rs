//! Streamable HTTP: one endpoint for both eras, as a service that any HTTP server can mount.

mod accept;
mod auth;
mod body;
mod carry;
mod endpoint;
mod guard;
mod heads;
mod impatient;
mod legacy;
mod listener;
mod modern;
mod options;
mod peer;
#[cfg(feature = "axum")]
mod router;
mod stream;

pub use self::auth::{Anonymous, Authenticator, BearerTokens, BearerTokensError, Challenge};
pub use self::body::ResponseBody;
pub use self::endpoint::HttpService;
pub use self::guard::AllowList;
pub use self::listener::{Drained, serve};
pub use self::options::HttpOptions;
pub use self::peer::PeerInfo;
