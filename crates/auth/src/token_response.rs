//! Responses of a token endpoint ([RFC 6749 §5](https://www.rfc-editor.org/rfc/rfc6749#section-5)).

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use trunkline_transport::Secret;

use crate::json_document::{DocumentError, JsonDocument};
use crate::oauth_error::OauthError;
use crate::scopes::ScopeSet;

/// A token that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenResponse {
    /// The token.
    pub access_token: Secret,
    /// The scheme to send it with, as the server spells it.
    pub token_type: String,
    /// How long it is valid.
    pub expires_in: Option<Duration>,
    /// The refresh token, if one was issued.
    pub refresh_token: Option<Secret>,
    /// The granted scopes, if they differ from the requested ones.
    pub scopes: Option<ScopeSet>,
    /// The ID token, if the scope `openid` was granted.
    pub id_token: Option<Secret>,
    /// What kind of token it is (RFC 8693 §2.2.1).
    pub issued_token_type: Option<String>,
}

/// The reason why no token was issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenResponseError {
    /// The server refused the request.
    #[error("the authorization server refused the token request: {0}")]
    Refused(OauthError),
    /// The server answered with another status, and without an error in its body.
    #[error("the token endpoint responded with status {0}")]
    Status(StatusCode),
    /// The response is not a token response.
    #[error("the token response is unusable: {0}")]
    Document(#[from] DocumentError),
    /// The token cannot be used by an MCP client.
    #[error("the token is of the unsupported type `{0}`")]
    TokenType(String),
}

impl TokenResponseError {
    /// Returns the error of the server, if it sent one.
    pub fn oauth_error(&self) -> Option<&OauthError> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// Reports whether the code or refresh token is not valid any more, so that authorization starts over.
    pub fn is_invalid_grant(&self) -> bool {
        self.oauth_error().is_some_and(|error| error.code() == "invalid_grant")
    }

    /// Reports whether the server does not know the client, so that its registration is of no use any more.
    pub fn is_invalid_client(&self) -> bool {
        let codes = ["invalid_client", "unauthorized_client"];
        self.oauth_error().is_some_and(|error| codes.contains(&error.code()))
    }
}

/// Reads the response of a token endpoint.
///
/// # Errors
/// See [`TokenResponseError`]. A response with an error in its body is an error with any status, since some servers send
/// errors with status 200.
pub fn read_token_response(response: &Response<Bytes>) -> Result<TokenResponse, TokenResponseError> {
    let document = JsonDocument::parse(response.body());
    if let Some(error) = document.as_ref().ok().and_then(OauthError::read) {
        return Err(TokenResponseError::Refused(error));
    }
    if !response.status().is_success() {
        return Err(TokenResponseError::Status(response.status()));
    }
    let document = document?;
    let token = document.required("access_token")?;
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenResponseError::Document(DocumentError::Missing("access_token")));
    }
    Ok(TokenResponse {
        access_token: Secret::new(token),
        token_type: document.text("token_type").unwrap_or_else(|| "Bearer".to_owned()),
        expires_in: document.seconds("expires_in").map(Duration::from_secs),
        refresh_token: document.text("refresh_token").map(Secret::new),
        scopes: document.text("scope").map(|scopes| ScopeSet::parse(&scopes)),
        id_token: document.text("id_token").map(Secret::new),
        issued_token_type: document.text("issued_token_type"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Result<TokenResponse, TokenResponseError> {
        let response = Response::builder().status(status).body(Bytes::from(body.to_owned())).unwrap();
        read_token_response(&response)
    }

    #[test]
    fn token_responses_are_read_tolerantly() {
        let body = r#"{"access_token":"sentinel","token_type":"bearer","expires_in":"3600","refresh_token":"sentinel2",
            "scope":"a b","id_token":{}}"#;
        let token = read(200, body).unwrap();
        assert_eq!(token.access_token.expose(), "sentinel");
        assert_eq!(token.expires_in, Some(Duration::from_secs(3600)));
        assert_eq!(token.scopes.as_ref().unwrap().to_string(), "a b");
        assert!(!format!("{token:?}").contains("sentinel"));
        let least = read(200, r#"{"access_token":"t"}"#).unwrap();
        assert_eq!(
            (least.token_type.as_str(), least.expires_in, least.refresh_token),
            ("Bearer", None, None)
        );
    }

    #[test]
    fn token_errors_have_the_code_of_the_server() {
        let table = [
            (
                400,
                r#"{"error":"invalid_grant"}"#,
                "the authorization server refused the token request: invalid_grant",
            ),
            (
                200,
                r#"{"error":"x","error_description":"y"}"#,
                "the authorization server refused the token request: x (y)",
            ),
            (503, "sentinel", "the token endpoint responded with status 503 Service Unavailable"),
            (200, "sentinel", "the token response is unusable: the document is not a JSON object"),
            (200, "{}", "the token response is unusable: the document has no `access_token`"),
            (
                200,
                r#"{"access_token":"a\r\nb"}"#,
                "the token response is unusable: the document has no `access_token`",
            ),
        ];
        for (status, body, expected) in table {
            assert_eq!(read(status, body).unwrap_err().to_string(), expected);
        }
        assert!(read(400, r#"{"error":"invalid_grant"}"#).unwrap_err().is_invalid_grant());
        assert!(read(401, r#"{"error":"invalid_client"}"#).unwrap_err().is_invalid_client());
        assert!(!read(500, "").unwrap_err().is_invalid_grant());
    }
}
