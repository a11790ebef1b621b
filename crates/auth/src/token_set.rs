//! Tokens of one client for one resource, with what is needed to use and to refresh them.

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use trunkline_transport::Secret;

use crate::scopes::ScopeSet;
use crate::token_response::{TokenResponse, TokenResponseError};
use crate::user_name::user_name;

/// The share of its life after which an access token is refreshed, in percent.
pub const REFRESH_AFTER_PERCENT: u32 = 80;

/// How an access token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTokenKind {
    /// By possession (RFC 6750).
    Bearer,
    /// With a proof of the key that it is bound to (RFC 9449).
    Dpop,
}

impl AccessTokenKind {
    /// Returns the scheme of the `Authorization` header.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }

    /// Reads a token type, which has no case.
    ///
    /// # Errors
    /// The type is another one.
    pub fn parse(name: &str) -> Result<Self, TokenResponseError> {
        let known =
            [Self::Bearer, Self::Dpop].into_iter().find(|kind| name.eq_ignore_ascii_case(kind.scheme()));
        known.ok_or_else(|| {
            TokenResponseError::TokenType(name.chars().filter(|c| !c.is_control()).take(64).collect())
        })
    }
}

/// Who issued tokens, to which client, for which resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenContext {
    /// The issuer.
    pub issuer: String,
    /// Where the tokens are refreshed.
    pub token_endpoint: String,
    /// Where they are revoked (RFC 7009), if the server has it.
    pub revocation_endpoint: Option<String>,
    /// The client that they were issued to.
    pub client_id: String,
    /// The parameter `resource` of the request; `None` for servers of revision 2025-03-26.
    pub resource: Option<String>,
    /// The scopes that were requested.
    pub requested: ScopeSet,
}

/// The tokens of one client for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSet {
    /// The access token.
    pub access_token: Secret,
    /// How it is presented.
    pub kind: AccessTokenKind,
    /// The refresh token.
    pub refresh_token: Option<Secret>,
    /// When it was issued.
    pub issued_at: SystemTime,
    /// When it expires, if the server named a time.
    pub expires_at: Option<SystemTime>,
    /// The scopes that were granted: those that the server named, or else the requested ones.
    pub granted: ScopeSet,
    /// The private key that the access token is bound to, in PKCS#8 and Base64.
    pub dpop_key: Option<Secret>,
    /// The name of the user, if a token has one. It was not verified, and is for display only.
    pub user: Option<String>,
    /// Who issued them, to which client, for which resource.
    pub context: TokenContext,
}

impl TokenSet {
    /// Makes a set of the response to a request.
    ///
    /// # Errors
    /// The token is neither a bearer token nor bound by DPoP.
    pub fn new(
        response: TokenResponse,
        context: TokenContext,
        now: SystemTime,
    ) -> Result<Self, TokenResponseError> {
        let id_token = response.id_token.as_ref();
        let user = id_token.and_then(user_name).or_else(|| user_name(&response.access_token));
        Ok(Self {
            user,
            kind: AccessTokenKind::parse(&response.token_type)?,
            access_token: response.access_token,
            refresh_token: response.refresh_token,
            issued_at: now,
            expires_at: response.expires_in.and_then(|life| now.checked_add(life)),
            granted: response.scopes.unwrap_or_else(|| context.requested.clone()),
            dpop_key: None,
            context,
        })
    }

    /// Reports whether the access token has expired.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|expiry| expiry <= now)
    }

    /// Reports whether the access token should be refreshed: it can be, and [`REFRESH_AFTER_PERCENT`] of its life are over.
    pub fn is_due_for_refresh(&self, now: SystemTime) -> bool {
        self.refresh_token.is_some() && self.refresh_at().is_some_and(|due| due <= now)
    }

    /// Returns when [`REFRESH_AFTER_PERCENT`] of the life of the access token are over.
    pub fn refresh_at(&self) -> Option<SystemTime> {
        let life = self.expires_at?.duration_since(self.issued_at).unwrap_or(Duration::ZERO);
        self.issued_at.checked_add(life / 100 * REFRESH_AFTER_PERCENT)
    }

    /// Returns the value of the `Authorization` header, marked as sensitive.
    pub fn authorization(&self) -> Option<HeaderValue> {
        let text = format!("{} {}", self.kind.scheme(), self.access_token.expose());
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn context() -> TokenContext {
        TokenContext {
            issuer: "https://a".to_owned(),
            token_endpoint: "https://a/token".to_owned(),
            revocation_endpoint: Some("https://a/revoke".to_owned()),
            client_id: "client".to_owned(),
            resource: Some("https://h/mcp".to_owned()),
            requested: ScopeSet::parse("a b"),
        }
    }

    pub(crate) fn tokens(access: &str, refresh: Option<&str>, life: u64) -> TokenSet {
        TokenSet {
            access_token: Secret::new(access),
            kind: AccessTokenKind::Bearer,
            refresh_token: refresh.map(Secret::new),
            issued_at: at(0),
            expires_at: Some(at(life)),
            granted: ScopeSet::parse("a"),
            dpop_key: None,
            user: None,
            context: context(),
        }
    }

    pub(crate) fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn tokens_are_due_for_refresh_at_80_percent_of_their_life() {
        let set = tokens("t", Some("r"), 1000);
        for (now, due, expired) in
            [(0, false, false), (799, false, false), (800, true, false), (1000, true, true)]
        {
            assert_eq!((set.is_due_for_refresh(at(now)), set.is_expired(at(now))), (due, expired), "{now}");
        }
        assert!(!set.is_due_for_refresh(SystemTime::UNIX_EPOCH), "a clock that went back");
        assert!(!tokens("t", None, 1000).is_due_for_refresh(at(900)));
        let endless = TokenSet { expires_at: None, ..tokens("t", Some("r"), 0) };
        assert!(!endless.is_due_for_refresh(at(9)) && !endless.is_expired(at(9)));
    }

    #[test]
    fn token_sets_are_made_of_responses() {
        let response = |text: &str| {
            let response = http::Response::new(bytes::Bytes::from(text.to_owned()));
            crate::token_response::read_token_response(&response).unwrap()
        };
        let body = r#"{"access_token":"sentinel","token_type":"dpop","expires_in":18446744073709551615}"#;
        let set = TokenSet::new(response(body), context(), at(0)).unwrap();
        assert_eq!(
            (set.kind, set.expires_at, set.granted.to_string()),
            (AccessTokenKind::Dpop, None, "a b".into())
        );
        assert_eq!(set.authorization().unwrap(), "DPoP sentinel");
        assert!(!format!("{set:?}{:?}", set.authorization()).contains("sentinel"));
        let mac = TokenSet::new(response(r#"{"access_token":"t","token_type":"mac"}"#), context(), at(0));
        assert_eq!(mac.unwrap_err(), TokenResponseError::TokenType("mac".to_owned()));
    }
}
