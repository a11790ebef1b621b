use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Response, StatusCode};
use trunkline_protocol::{RawJson, Refusal};

use super::AuthRefusal;
use crate::edge::RenderedResponse;
use crate::http::body::McpResponseBody;
use crate::http::protected_resource::ProtectedResource;

/// The challenge to a caller with a token that lacks scopes, for a response of a call
/// ([RFC 6750 §3.1](https://www.rfc-editor.org/rfc/rfc6750#section-3.1)).
pub(in crate::http) struct ScopeChallenge(AuthRefusal);

impl ScopeChallenge {
    /// Reads the scopes from the error of a response; `None` for any other response.
    pub(in crate::http) fn for_response(answer: &RenderedResponse) -> Option<Self> {
        if answer.status != StatusCode::FORBIDDEN.as_u16() {
            return None;
        }
        let message = RawJson::parse(answer.message.clone()).ok()?;
        Some(Self(AuthRefusal::insufficient_scope(Refusal::required_scopes_in(&message)?)))
    }

    /// Adds the challenge to the response.
    #[cold]
    pub(in crate::http) fn add_to(
        self,
        response: &mut Response<McpResponseBody>,
        protected: Option<&ProtectedResource>,
    ) {
        for mut challenge in self.0.challenges().iter().cloned() {
            if let Some(protected) = protected {
                protected.complete(&mut challenge, StatusCode::FORBIDDEN);
            }
            if let Ok(value) = HeaderValue::from_str(&challenge.to_string()) {
                response.headers_mut().append(WWW_AUTHENTICATE, value);
            }
        }
    }
}
