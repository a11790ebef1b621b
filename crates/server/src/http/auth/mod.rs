//! Authentication of HTTP requests: before a body is read, and before any session, stream or state is looked up.
//!
//! # Invariants
//!
//! - A request without an accepted credential learns nothing else, and its body is not read:
//!   `authentication_precedes_session_lookup_and_the_body`.
//! - A stream ends with the credential that opened it: `streams_of_a_revoked_token_end_and_others_stay`,
//!   `streams_end_at_the_expiry_of_their_token`.

mod anonymous;
mod authenticated;
mod bearer_tokens;
mod challenge;
mod grant_bound_body;
mod header;
mod refusal;
mod scope_challenge;
mod until_revoked;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use trunkline_session::Principal;

use super::protected_resource::ProtectedResource;
use crate::call::BoxFuture;

pub use self::anonymous::AnonymousAuthenticator;
pub use self::authenticated::{Authenticated, AuthenticationResult};
pub use self::bearer_tokens::{BearerTokens, BearerTokensError, TokenChanges};
pub use self::challenge::AuthChallenge;
pub(super) use self::grant_bound_body::GrantBoundBody;
pub use self::header::bearer_token;
pub(super) use self::header::{TokenScheme, presented_token, read_token};
pub use self::refusal::AuthRefusal;
pub(super) use self::scope_challenge::ScopeChallenge;
pub(super) use self::until_revoked::until_revoked;

/// Authenticates requests: decides which principal a request belongs to, and what its credential grants.
///
/// ```
/// use http::request::Parts;
/// use trunkline_server::http::{AuthRefusal, Authenticated, AuthenticationResult, Authenticator, bearer_token};
/// use trunkline_server::session::Principal;
///
/// #[derive(Debug)]
/// struct OneToken;
///
/// impl Authenticator for OneToken {
///     fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
///         AuthenticationResult::Ready(bearer_token(request).and_then(|token| match token {
///             Some(b"let me in") => Ok(Authenticated::new(Principal::Named("ann".into()))),
///             Some(_) => Err(AuthRefusal::invalid_token("the token is not known")),
///             None => Err(AuthRefusal::missing_token()),
///         }))
///     }
/// }
/// ```
pub trait Authenticator: Send + Sync + fmt::Debug + 'static {
    /// Authenticates a request: at once where that is possible, otherwise as a future.
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a>;

    /// Returns the sender of a request by its only `Authorization` header, if that credential is known already and needs
    /// no other part of the request; otherwise [`Authenticator::authenticate`] decides. It is for credentials that come
    /// with every request: to read the whole request costs more than to compare a token.
    fn recognize(&self, _authorization: &[u8]) -> Option<Authenticated> {
        None
    }

    /// Returns the description of the endpoint for clients that need an OAuth token; by default that of
    /// [`HttpServerOptions::protected_resource`](crate::http::HttpServerOptions::protected_resource).
    fn protected_resource(&self) -> Option<Arc<ProtectedResource>> {
        None
    }

    /// Returns the metadata of the authorization server, which clients of revision 2025-03-26 look for at the root of
    /// the MCP server; `None` if there is none to offer. The future is `None` if it cannot be fetched now.
    fn server_metadata(&self) -> Option<BoxFuture<'_, Option<Bytes>>> {
        None
    }

    /// Returns the principal of every request, if there is one for all of them: then none is authenticated.
    fn fixed_principal(&self) -> Option<Principal> {
        None
    }
}
