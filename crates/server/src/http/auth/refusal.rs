use std::borrow::Cow;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use trunkline_protocol::{JsonWriter, Refusal};

use super::AuthChallenge;
use crate::http::body::McpResponseBody;
use crate::http::protected_resource::ProtectedResource;
use crate::metrics::process;

/// The refusal of a request by its authentication: a status, challenges, and an OAuth error
/// ([RFC 6750 §3](https://www.rfc-editor.org/rfc/rfc6750#section-3)).
///
/// The endpoint adds `resource_metadata` and `scope` to its challenges, if it has
/// [`HttpServerOptions::protected_resource`](crate::http::HttpServerOptions::protected_resource).
///
/// ```
/// use http::{HeaderName, HeaderValue};
/// use trunkline_server::http::{AuthChallenge, AuthRefusal};
///
/// let refusal = AuthRefusal::missing_token()
///     .with_challenge(AuthChallenge::new("DPoP").param("algs", "ES256"))
///     .with_header(HeaderName::from_static("dpop-nonce"), HeaderValue::from_static("n-0S6"));
/// assert_eq!(refusal.status(), 401);
/// ```
#[derive(Clone, Debug)]
pub struct AuthRefusal {
    // Boxed: a request that is accepted should not carry the space.
    details: Box<AuthRefusalDetails>,
}

#[derive(Clone, Debug)]
struct AuthRefusalDetails {
    status: StatusCode,
    error: Cow<'static, str>,
    description: Cow<'static, str>,
    challenges: Vec<AuthChallenge>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl AuthRefusal {
    /// Refuses a request without a credential: 401, and a challenge without an error
    /// ([RFC 6750 §3.1](https://www.rfc-editor.org/rfc/rfc6750#section-3.1)).
    #[cold]
    pub fn missing_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a valid credential is required")
            .with_challenge(AuthChallenge::bearer())
    }

    /// Refuses a token that is unknown, expired, revoked, or for another server: 401.
    #[cold]
    pub fn invalid_token(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "invalid_token", description).challenged()
    }

    /// Refuses a request with a token that was revoked while it was handled: 401.
    #[cold]
    pub(in crate::http) fn revoked_token() -> Self {
        Self::invalid_token("the token was revoked")
    }

    /// Refuses a request with a credential in a wrong form or place, or with several: 400.
    #[cold]
    pub fn invalid_request(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", description).challenged()
    }

    /// Refuses a token without a needed scope: 403. All scopes of the operation are named, so that the client needs
    /// to request more only once.
    #[cold]
    pub fn insufficient_scope<S: AsRef<str>>(scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<S> = scopes.into_iter().collect();
        let scopes = scopes.iter().map(S::as_ref).collect::<Vec<_>>().join(" ");
        let mut refusal = Self::new(
            StatusCode::FORBIDDEN,
            "insufficient_scope",
            format!("the token needs the scope: {scopes}"),
        );
        let challenge = AuthChallenge::bearer().param("error", "insufficient_scope").param("scope", scopes);
        refusal.details.challenges.push(challenge);
        refusal
    }

    /// Refuses a sender that made too many attempts: 429 with `Retry-After`.
    #[cold]
    pub fn too_many_requests(retry_after: Duration) -> Self {
        let description = "too many requests; try again later";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", description).retry_after(retry_after)
    }

    /// Reports that credentials cannot be checked now: 503 with `Retry-After`.
    #[cold]
    pub fn unavailable(retry_after: Duration) -> Self {
        let description = "credentials cannot be checked now; try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", description)
            .retry_after(retry_after)
    }

    fn new(status: StatusCode, error: &'static str, description: impl Into<Cow<'static, str>>) -> Self {
        let details = AuthRefusalDetails {
            status,
            error: error.into(),
            description: description.into(),
            challenges: Vec::new(),
            headers: Vec::new(),
        };
        Self { details: Box::new(details) }
    }

    /// Adds the challenge with the error and its description.
    fn challenged(self) -> Self {
        let (error, description) = (self.details.error.to_string(), self.details.description.to_string());
        let challenge = AuthChallenge::bearer().param("error", error).param("error_description", description);
        self.with_challenge(challenge)
    }

    fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.with_header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Adds a challenge, in a `WWW-Authenticate` header of its own.
    #[must_use]
    pub fn with_challenge(mut self, challenge: AuthChallenge) -> Self {
        self.details.challenges.push(challenge);
        self
    }

    /// Removes the challenges, to replace them by those of another scheme.
    #[must_use]
    pub fn without_challenges(mut self) -> Self {
        self.details.challenges.clear();
        self
    }

    /// Adds a header, such as `DPoP-Nonce`.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.details.headers.push((name, value));
        self
    }

    /// Sets the error and its description in the body.
    #[must_use]
    pub fn with_error(
        mut self,
        error: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        (self.details.error, self.details.description) = (error.into(), description.into());
        self
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        self.details.status
    }

    /// Returns the description of the error, as the response has it.
    pub fn description(&self) -> &str {
        &self.details.description
    }

    /// Returns the challenges.
    pub fn challenges(&self) -> &[AuthChallenge] {
        &self.details.challenges
    }

    /// Makes the response. Its body is an OAuth error and no JSON-RPC message: the id of the request is in a body that
    /// was not read.
    #[cold]
    pub(in crate::http) fn into_response(
        self,
        protected: Option<&ProtectedResource>,
    ) -> Response<McpResponseBody> {
        let AuthRefusalDetails { status, error, description, challenges, headers } = *self.details;
        count(status);
        let mut body = JsonWriter::with_capacity(96);
        body.open_object();
        for (key, text) in [("error", &error), ("error_description", &description)] {
            body.plain_key(key);
            body.string(text);
        }
        body.close_object();
        let mut response = Response::new(McpResponseBody::whole(body.into_string()));
        *response.status_mut() = status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for mut challenge in challenges {
            if let Some(protected) = protected {
                protected.complete(&mut challenge, status);
            }
            if let Ok(value) = HeaderValue::from_str(&challenge.to_string()) {
                fields.append(WWW_AUTHENTICATE, value);
            }
        }
        for (name, value) in headers {
            fields.append(name, value);
        }
        response
    }
}

fn count(status: StatusCode) {
    process::count_refusal(match status {
        StatusCode::BAD_REQUEST => &Refusal::INVALID_REQUEST,
        StatusCode::FORBIDDEN => &Refusal::INSUFFICIENT_SCOPE,
        StatusCode::TOO_MANY_REQUESTS => &Refusal::TOO_MANY,
        StatusCode::SERVICE_UNAVAILABLE => &Refusal::AUTH_UNAVAILABLE,
        _ => &Refusal::UNAUTHORIZED,
    });
}
