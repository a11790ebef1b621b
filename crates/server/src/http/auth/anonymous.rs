use http::request::Parts;
use trunkline_session::Principal;

use super::{Authenticated, AuthenticationResult, Authenticator};

/// Accepts every request as anonymous: the default on the loopback.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnonymousAuthenticator;

impl Authenticator for AnonymousAuthenticator {
    fn authenticate<'a>(&'a self, _request: &'a Parts) -> AuthenticationResult<'a> {
        AuthenticationResult::Ready(Ok(Authenticated::new(Principal::Anonymous)))
    }

    fn fixed_principal(&self) -> Option<Principal> {
        Some(Principal::Anonymous)
    }
}
