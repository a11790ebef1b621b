use futures_util::future::BoxFuture;

use super::{PreparedRedirect, UserAgent, UserAgentError};

/// A user agent for programs without a user at hand: every login fails with what the user has to do.
///
/// What was to be authorized is then [pending](crate::authorizer::Authorizer::pending).
#[derive(Clone, Debug)]
pub struct UnattendedUserAgent {
    advice: String,
}

impl UnattendedUserAgent {
    /// Creates the user agent; `advice` is part of the error.
    pub fn new(advice: impl Into<String>) -> Self {
        Self { advice: advice.into() }
    }
}

impl UserAgent for UnattendedUserAgent {
    fn prepare<'a>(
        &'a self,
        _registered: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        Box::pin(async { Err(UserAgentError::Unavailable(self.advice.clone())) })
    }
}
