use std::fmt;

use trunkline_protocol::{ByteString, JsonObject};
use trunkline_session::Timestamp;

use super::TokenError;
use super::rules::text_list;

/// What a valid access token grants.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessTokenClaims {
    /// The issuer. With the subject it identifies the principal.
    pub issuer: ByteString,
    /// The user, or the client if it acts for itself.
    pub subject: ByteString,
    /// The client that the token was issued to: `client_id`, or `azp` of older issuers.
    pub client_id: Option<ByteString>,
    /// The granted scopes: `scope` as text, or `scp` as text or array.
    pub scopes: Vec<String>,
    /// The expiry, which only introspection may leave out.
    pub expires: Option<Timestamp>,
    /// The thumbprint of the key that the token is bound to (`cnf.jkt`,
    /// [RFC 9449 §6.1](https://www.rfc-editor.org/rfc/rfc9449#section-6.1)). Such a token must come with a DPoP proof.
    pub key_thumbprint: Option<ByteString>,
    /// All claims as they were received, for access rules.
    pub claims: JsonObject,
}

impl AccessTokenClaims {
    /// Reads the claims of a token that has been checked.
    pub(super) fn read(
        claims: JsonObject,
        issuer: ByteString,
        subject: Option<ByteString>,
        expires: Option<Timestamp>,
    ) -> Result<Self, TokenError> {
        let client_id = match text(&claims, "client_id")? {
            Some(client) => Some(client),
            None => text(&claims, "azp")?,
        };
        // They name the caller in logs, of which no value may make a line of its own.
        let is_one_line = |text: &&ByteString| !text.chars().any(char::is_control);
        if client_id.as_ref().is_some_and(|client| !is_one_line(&client)) {
            return Err(TokenError::Claim("client_id"));
        }
        let subject = subject.filter(|subject| !subject.is_empty() && is_one_line(&subject));
        Ok(Self {
            issuer,
            subject: subject.ok_or(TokenError::Claim("sub"))?,
            client_id,
            scopes: scopes(&claims)?,
            expires,
            key_thumbprint: key_thumbprint(&claims)?,
            claims,
        })
    }

    /// Reports whether a scope was granted by its exact name. Hierarchies of scopes are up to the caller.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| granted == scope)
    }
}

impl fmt::Debug for AccessTokenClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Other claims may have names and addresses of persons.
        f.debug_struct("AccessTokenClaims")
            .field("issuer", &self.issuer)
            .field("subject", &self.subject)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Reads an optional claim that must be text.
pub(super) fn text(claims: &JsonObject, name: &'static str) -> Result<Option<ByteString>, TokenError> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => value.to_text().map(Some).ok_or(TokenError::Claim(name)),
    }
}

fn scopes(claims: &JsonObject) -> Result<Vec<String>, TokenError> {
    let (name, value) = match (claims.get("scope"), claims.get("scp")) {
        (Some(value), _) => ("scope", value),
        (None, Some(value)) => ("scp", value),
        (None, None) => return Ok(Vec::new()),
    };
    let list = text_list(value).ok_or(TokenError::Claim(name))?;
    Ok(list
        .iter()
        .flat_map(|scopes| scopes.split(' '))
        .filter(|scope| !scope.is_empty())
        .map(Into::into)
        .collect())
}

/// Reads `cnf.jkt`. A `cnf` of another method is refused: to ignore it would turn a bound token into a bearer token
/// ([RFC 7800 §3.1](https://www.rfc-editor.org/rfc/rfc7800#section-3.1)).
fn key_thumbprint(claims: &JsonObject) -> Result<Option<ByteString>, TokenError> {
    let Some(confirmation) = claims.get("cnf") else { return Ok(None) };
    let confirmation = confirmation.members().map_err(|_| TokenError::Claim("cnf"))?;
    if confirmation.len() > 1 {
        return Err(TokenError::Confirmation);
    }
    confirmation.text("jkt").map(Some).ok_or(TokenError::Confirmation)
}
