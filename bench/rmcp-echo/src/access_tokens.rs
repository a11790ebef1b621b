//! Access tokens. rmcp verifies none for a server, so that it is done as the documentation of `jsonwebtoken` shows, in a
//! layer of axum.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;

/// The resource that tokens have to be for.
const RESOURCE: &str = "https://echo.example/mcp";

/// Verifies the tokens of one issuer with one key.
pub(crate) struct TokenVerifier {
    key: DecodingKey,
    validation: Validation,
}

/// The claims that a server needs at least.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    scope: String,
}

impl TokenVerifier {
    /// Fetches the key of an issuer.
    ///
    /// # Errors
    /// The issuer does not respond, or has no key.
    pub(crate) fn of_issuer(issuer: &str) -> anyhow::Result<Self> {
        let address = issuer.strip_prefix("http://").context("the issuer has to use http")?;
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /jwks HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let (_, body) = response.split_once("\r\n\r\n").context("the issuer sent no body")?;
        let keys: JwkSet = serde_json::from_str(body)?;
        let key = DecodingKey::from_jwk(keys.keys.first().context("the issuer has no key")?)?;
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[RESOURCE]);
        Ok(Self { key, validation })
    }

    fn accepts(&self, token: &str) -> bool {
        let decoded = decode::<Claims>(token, &self.key, &self.validation);
        decoded.is_ok_and(|token| !token.claims.sub.is_empty() && !token.claims.scope.is_empty())
    }
}

/// Passes on only requests with a valid token.
pub(crate) async fn require_token(
    State(verifier): State<Arc<TokenVerifier>>,
    request: Request,
    next: Next,
) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer "));
    if token.is_some_and(|token| verifier.accepts(token)) {
        return next.run(request).await;
    }
    let mut refused = StatusCode::UNAUTHORIZED.into_response();
    refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}
