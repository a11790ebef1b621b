//! Refreshing an access token ([RFC 6749 §6](https://www.rfc-editor.org/rfc/rfc6749#section-6)).
//!
//! The driver makes sure that one refresh at a time is under way for a set of tokens, and stores the new set before it
//! uses it: with rotation, the old refresh token is of no use after the response.

use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, Response};

use crate::dpop_nonce::{NonceDecision, NonceState};
use crate::scopes::ScopeSet;
use crate::token_request::{ClientAuthentication, TokenGrant, TokenRequest};
use crate::token_response::{TokenResponse, TokenResponseError, read_token_response};
use crate::token_set::TokenSet;

/// What a refresh results in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// New tokens, to be stored before they are used.
    Refreshed(Box<TokenSet>),
    /// The request has to be repeated with another DPoP nonce, and with another assertion if the client uses one.
    RepeatWithNonce,
    /// The refresh token is not valid any more: remove it, and authorize again. Where several processes share a store,
    /// another one may have used the token, so read the store again first.
    Reauthorize(TokenResponseError),
    /// The authorization server does not know the client any more: if it has registered itself, remove the registration
    /// too. A client that an operator has registered may only have another secret by now, and the tokens are kept.
    Reregister(TokenResponseError),
    /// A failure that may pass. The tokens are kept.
    Keep(TokenResponseError),
}

/// Returns the request that refreshes a set of tokens, or `None` if it has no refresh token.
///
/// The parameter `resource` is sent here too; without it an authorization server may issue a token for another
/// audience. The scopes are omitted, which means those that were granted.
///
/// # Errors
/// The token endpoint is not a usable URL.
pub fn refresh_request(
    tokens: &TokenSet,
    client: &ClientAuthentication,
) -> Option<Result<Request<Bytes>, http::Error>> {
    let grant = TokenGrant::RefreshToken(tokens.refresh_token.clone()?);
    let request = TokenRequest {
        endpoint: &tokens.context.token_endpoint,
        grant: &grant,
        client,
        resource: tokens.context.resource.as_deref(),
        scopes: &ScopeSet::default(),
    };
    Some(request.build())
}

/// Reads the response to [`refresh_request`]. A request that got no response changes nothing.
pub fn read_refresh(
    tokens: &TokenSet,
    response: &Response<Bytes>,
    nonce: &mut NonceState,
    now: SystemTime,
) -> RefreshOutcome {
    if nonce.on_response(response) == NonceDecision::Repeat {
        return RefreshOutcome::RepeatWithNonce;
    }
    match read_token_response(response).and_then(|response| refreshed(tokens, response, now)) {
        Ok(tokens) => RefreshOutcome::Refreshed(Box::new(tokens)),
        Err(error) if error.is_invalid_grant() => RefreshOutcome::Reauthorize(error),
        Err(error) if error.is_invalid_client() => RefreshOutcome::Reregister(error),
        Err(error) => RefreshOutcome::Keep(error),
    }
}

/// A response without a refresh token or scopes leaves those that were there before.
fn refreshed(
    before: &TokenSet,
    response: TokenResponse,
    now: SystemTime,
) -> Result<TokenSet, TokenResponseError> {
    let granted = response.scopes.clone().unwrap_or_else(|| before.granted.clone());
    let tokens = TokenSet::new(response, before.context.clone(), now)?;
    let refresh_token = tokens.refresh_token.clone().or_else(|| before.refresh_token.clone());
    let user = tokens.user.clone().or_else(|| before.user.clone());
    Ok(TokenSet { granted, refresh_token, user, ..tokens })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token_set::tests::{at, tokens};

    fn read(status: u16, body: &str) -> RefreshOutcome {
        let response = Response::builder().status(status).header("DPoP-Nonce", "n");
        let response = response.body(Bytes::from(body.to_owned())).unwrap();
        read_refresh(&tokens("old", Some("r1"), 100), &response, &mut NonceState::default(), at(90))
    }

    #[test]
    fn refresh_requests_have_the_resource() {
        let client = ClientAuthentication::Public { client_id: "client".to_owned() };
        let request = refresh_request(&tokens("t", Some("r"), 1), &client).unwrap().unwrap();
        let expected =
            "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fh%2Fmcp&client_id=client";
        assert_eq!(request.body(), expected);
        assert_eq!(request.uri(), "https://a/token");
        assert!(refresh_request(&tokens("t", None, 1), &client).is_none());
    }

    #[test]
    fn refreshed_tokens_are_rotated_or_kept() {
        let table = [
            (r#"{"access_token":"new","refresh_token":"r2","expires_in":50,"scope":"b"}"#, "r2", "b"),
            (r#"{"access_token":"new","expires_in":50}"#, "r1", "a"),
        ];
        for (body, refresh, granted) in table {
            let RefreshOutcome::Refreshed(set) = read(200, body) else { panic!("{body}") };
            assert_eq!(set.access_token.expose(), "new");
            assert_eq!(set.refresh_token.as_ref().unwrap().expose(), refresh);
            assert_eq!((set.granted.to_string().as_str(), set.expires_at), (granted, Some(at(140))));
        }
    }

    #[test]
    fn only_invalid_grants_and_clients_end_a_set_of_tokens() {
        let kind = |outcome: &RefreshOutcome| match outcome {
            RefreshOutcome::Refreshed(_) => "refreshed",
            RefreshOutcome::RepeatWithNonce => "nonce",
            RefreshOutcome::Reauthorize(_) => "reauthorize",
            RefreshOutcome::Reregister(_) => "reregister",
            RefreshOutcome::Keep(_) => "keep",
        };
        let table = [
            (400, r#"{"error":"invalid_grant"}"#, "reauthorize"),
            (401, r#"{"error":"invalid_client"}"#, "reregister"),
            (400, r#"{"error":"use_dpop_nonce"}"#, "nonce"),
            (400, r#"{"error":"temporarily_unavailable"}"#, "keep"),
            (500, "", "keep"),
            (429, "", "keep"),
            (200, "<html>", "keep"),
            (200, r#"{"access_token":"t","token_type":"mac"}"#, "keep"),
        ];
        for (status, body, expected) in table {
            assert_eq!(kind(&read(status, body)), expected, "{body}");
        }
    }
}
