use std::fmt;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Response};
use trunkline_session::Principal;

use super::AuthRefusal;
use crate::access_grant::AccessGrant;
use crate::call::BoxFuture;
use crate::caller_identity::CallerIdentity;
use crate::http::body::McpResponseBody;

/// The sender of an authenticated request.
#[derive(Clone, Debug)]
pub struct Authenticated {
    /// The principal that the request belongs to.
    pub principal: Principal,
    /// What the credential grants; `None` for a request without one, and for a credential without scopes that never
    /// ends.
    pub grant: Option<Arc<AccessGrant>>,
    /// Headers for the response, such as `DPoP-Nonce`.
    pub response_headers: Vec<(HeaderName, HeaderValue)>,
}

impl Authenticated {
    /// Makes a sender without scopes and with a credential that never ends.
    pub fn new(principal: Principal) -> Self {
        Self { principal, grant: None, response_headers: Vec::new() }
    }

    /// Returns the identity for a handler.
    pub fn identity(&self) -> CallerIdentity<'_> {
        CallerIdentity::new(&self.principal, self.grant.as_ref())
    }

    /// Sets what the credential grants.
    #[must_use]
    pub fn with_grant(mut self, grant: impl Into<Arc<AccessGrant>>) -> Self {
        self.grant = Some(grant.into());
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with_response_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.response_headers.push((name, value));
        self
    }

    /// Adds the headers to a response, and ends its stream with the credential.
    pub(in crate::http) fn finish(&self, response: &mut Response<McpResponseBody>) {
        response.body_mut().bind_to_grant(self.grant.as_ref());
        for (name, value) in &self.response_headers {
            response.headers_mut().append(name, value.clone());
        }
    }
}

/// The result of an authentication, at once or later.
///
/// An authenticator that needs no IO returns [`AuthenticationResult::Ready`], which allocates nothing.
pub enum AuthenticationResult<'a> {
    /// The request is authenticated, or refused.
    Ready(Result<Authenticated, AuthRefusal>),
    /// It has to be waited for, for instance until keys are fetched.
    Pending(BoxFuture<'a, Result<Authenticated, AuthRefusal>>),
}

impl AuthenticationResult<'_> {
    /// Waits for the result.
    ///
    /// # Errors
    /// The request has no acceptable credential.
    pub async fn wait(self) -> Result<Authenticated, AuthRefusal> {
        match self {
            Self::Ready(result) => result,
            Self::Pending(future) => future.await,
        }
    }
}

impl fmt::Debug for AuthenticationResult<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(result) => f.debug_tuple("Ready").field(result).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}
