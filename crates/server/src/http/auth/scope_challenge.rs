use std::sync::Arc;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Response, StatusCode};
use trunkline_protocol::{RawJson, Refusal};

use super::AuthChallenge;
use crate::access_grant::AccessGrant;
use crate::edge::RenderedResponse;
use crate::http::body::McpResponseBody;
use crate::http::protected_resource::ProtectedResource;

/// The challenge to a caller with a token that lacks scopes, for a response of a call
/// ([RFC 6750 §3.1](https://www.rfc-editor.org/rfc/rfc6750#section-3.1)).
pub(in crate::http) struct ScopeChallenge(AuthChallenge);

impl ScopeChallenge {
    /// Reads the scopes from the error of a response to a caller; `None` for any other response. The challenge names the
    /// scheme of the caller's token ([RFC 9449 §7.1](https://www.rfc-editor.org/rfc/rfc9449#section-7.1)).
    pub(in crate::http) fn for_response(
        answer: &RenderedResponse,
        grant: Option<&Arc<AccessGrant>>,
    ) -> Option<Self> {
        if answer.status != StatusCode::FORBIDDEN.as_u16() {
            return None;
        }
        let message = RawJson::parse(answer.message.clone()).ok()?;
        let scopes = Refusal::required_scopes_in(&message)?;
        let scheme = if grant.is_some_and(|grant| grant.is_key_bound) { "DPoP" } else { "Bearer" };
        let challenge =
            AuthChallenge::new(scheme).param("error", "insufficient_scope").param("scope", scopes.join(" "));
        Some(Self(challenge))
    }

    /// Adds the challenge to the response.
    #[cold]
    pub(in crate::http) fn add_to(
        self,
        response: &mut Response<McpResponseBody>,
        protected: Option<&ProtectedResource>,
    ) {
        let mut challenge = self.0;
        if let Some(protected) = protected {
            protected.complete(&mut challenge, StatusCode::FORBIDDEN);
        }
        if let Ok(value) = HeaderValue::from_str(&challenge.to_string()) {
            response.headers_mut().append(WWW_AUTHENTICATE, value);
        }
    }
}
