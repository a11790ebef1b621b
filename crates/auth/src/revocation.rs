//! Revoking tokens ([RFC 7009](https://www.rfc-editor.org/rfc/rfc7009)).

use bytes::Bytes;
use http::{Request, Response, header};

use crate::form::FormParameters;
use crate::json_document::JsonDocument;
use crate::oauth_error::OauthError;
use crate::token_request::ClientAuthentication;
use crate::token_response::TokenResponseError;
use crate::token_set::TokenSet;

/// Which token of a set is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokedToken {
    /// The refresh token.
    Refresh,
    /// The access token.
    Access,
}

/// Returns the request that revokes a token, or `None` if the set has no such token. Its body has secrets.
///
/// # Errors
/// The endpoint is not a usable URL.
pub fn revocation_request(
    endpoint: &str,
    tokens: &TokenSet,
    which: RevokedToken,
    client: &ClientAuthentication,
) -> Option<Result<Request<Bytes>, http::Error>> {
    let (token, hint) = match which {
        RevokedToken::Refresh => (tokens.refresh_token.as_ref()?, "refresh_token"),
        RevokedToken::Access => (&tokens.access_token, "access_token"),
    };
    let mut form = FormParameters::default();
    form.push("token", token.expose());
    form.push("token_type_hint", hint);
    let authorization = client.apply(&mut form);
    let mut request = Request::post(endpoint)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json");
    if let Some(value) = authorization {
        request = request.header(header::AUTHORIZATION, value);
    }
    Some(request.body(Bytes::from(form.finish())))
}

/// Reads the response to [`revocation_request`]. A token that the server does not know counts as revoked (§2.2).
///
/// # Errors
/// The server refused the request.
pub fn read_revocation(response: &Response<Bytes>) -> Result<(), TokenResponseError> {
    if response.status().is_success() {
        return Ok(());
    }
    let error = JsonDocument::parse(response.body()).ok().as_ref().and_then(OauthError::read);
    Err(error.map_or(TokenResponseError::Status(response.status()), TokenResponseError::Refused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token_set::tests::tokens;

    #[test]
    fn revocation_requests_name_the_token_and_the_client() {
        let client = ClientAuthentication::Public { client_id: "c".to_owned() };
        let body = |set: &TokenSet, which| {
            let request = revocation_request("https://a/revoke", set, which, &client)?.unwrap();
            Some(String::from_utf8(request.body().to_vec()).unwrap())
        };
        let set = tokens("t", Some("r"), 1);
        let expected = "token=r&token_type_hint=refresh_token&client_id=c";
        assert_eq!(body(&set, RevokedToken::Refresh).as_deref(), Some(expected));
        let expected = "token=t&token_type_hint=access_token&client_id=c";
        assert_eq!(body(&set, RevokedToken::Access).as_deref(), Some(expected));
        assert_eq!(body(&tokens("t", None, 1), RevokedToken::Refresh), None);
    }

    #[test]
    fn refused_revocations_have_the_error_of_the_server() {
        let read = |status: u16, body: &'static str| {
            let response =
                Response::builder().status(status).body(Bytes::from_static(body.as_bytes())).unwrap();
            read_revocation(&response).map_err(|error| error.to_string())
        };
        assert_eq!(read(200, ""), Ok(()));
        assert!(read(401, r#"{"error":"invalid_client"}"#).unwrap_err().contains("invalid_client"));
        assert!(read(503, "").unwrap_err().contains("503"));
    }
}
