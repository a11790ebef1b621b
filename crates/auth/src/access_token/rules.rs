use std::time::Duration;

use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{JsonObject, RawJson};
use trunkline_session::Timestamp;

use super::TokenError;
use crate::jose::AlgorithmSet;

/// What a resource server requires of the tokens of one issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRules {
    /// The issuer, compared as a string.
    pub issuer: String,
    /// The accepted audiences, of which a token must name one, compared as strings. Usually the resource identifier
    /// alone. With none every token is refused.
    pub audiences: Vec<String>,
    /// The allowed signature algorithms; by default all.
    pub algorithms: AlgorithmSet,
    /// The required type of tokens; by default [`TokenTyping::AtJwt`].
    pub typing: TokenTyping,
    /// The tolerated difference of clocks, at most [`TokenRules::MAX_SKEW`], which is the default.
    pub skew: Duration,
}

/// The `typ` that tokens of an issuer must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenTyping {
    /// Only `at+jwt` ([RFC 9068 §2.1](https://www.rfc-editor.org/rfc/rfc9068#section-2.1)).
    AtJwt,
    /// Also no `typ`, or `JWT`, for issuers from before RFC 9068. ID tokens of such issuers differ from access tokens
    /// by their audience and by the claims that bind them to a token or code.
    AllowUntyped,
}

impl TokenRules {
    /// The largest tolerated difference of clocks.
    pub const MAX_SKEW: Duration = Duration::from_secs(60);

    /// Requires an issuer and one of some audiences, with the default of everything else.
    pub fn new(issuer: impl Into<String>, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            issuer: issuer.into(),
            audiences: audiences.into_iter().map(Into::into).collect(),
            algorithms: AlgorithmSet::all(),
            typing: TokenTyping::AtJwt,
            skew: Self::MAX_SKEW,
        }
    }

    /// Checks the type of a token: the media type of its header, in lower case.
    pub(super) fn check_type(&self, media_type: Option<&str>, claims: &JsonObject) -> Result<(), TokenError> {
        match (media_type, self.typing) {
            (Some("at+jwt"), _) => Ok(()),
            (None | Some("jwt"), TokenTyping::AllowUntyped) if !is_other_token(claims) => Ok(()),
            _ => Err(TokenError::Type),
        }
    }

    pub(super) fn check_audience(&self, audience: Option<&RawJson>) -> Result<(), TokenError> {
        let names = match audience {
            None => return Err(TokenError::Claim("aud")),
            Some(value) => text_list(value).ok_or(TokenError::Claim("aud"))?,
        };
        if names.iter().any(|name| self.audiences.contains(name)) {
            Ok(())
        } else {
            Err(TokenError::Audience)
        }
    }

    /// Checks `exp` and `nbf`, and returns the expiry.
    pub(super) fn check_time(
        &self,
        claims: &JsonObject,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, TokenError> {
        let skew = self.skew.min(Self::MAX_SKEW);
        let expires = numeric_date(claims, "exp")?;
        if expires.is_some_and(|expires| expires.plus(skew) <= now) {
            return Err(TokenError::Expired);
        }
        if numeric_date(claims, "nbf")?.is_some_and(|start| start > now.plus(skew)) {
            return Err(TokenError::NotYetValid);
        }
        Ok(expires)
    }
}

/// Reports whether the claims are those of another token: the hashes of an ID token
/// ([OpenID Connect Core §3.3.2.11](https://openid.net/specs/openid-connect-core-1_0.html#HybridIDToken)), or the events
/// of a logout or security event token.
fn is_other_token(claims: &JsonObject) -> bool {
    ["at_hash", "c_hash", "s_hash", "events"].iter().any(|name| claims.get(name).is_some())
}

/// Reads a text or an array of texts.
pub(super) fn text_list(value: &RawJson) -> Option<Vec<String>> {
    match value.kind() {
        JsonKind::String => Some(vec![value.as_text()?.into_owned()]),
        JsonKind::Array => value.decode().ok(),
        _ => None,
    }
}

/// Reads a `NumericDate`: seconds since 1970, which may have a fraction
/// ([RFC 7519 §2](https://www.rfc-editor.org/rfc/rfc7519#section-2)).
pub(crate) fn numeric_date(claims: &JsonObject, name: &'static str) -> Result<Option<Timestamp>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    if let Ok(seconds) = value.get::<u64>() {
        return Ok(Some(Timestamp(seconds.saturating_mul(1000))));
    }
    let seconds = value.get::<f64>().map_err(|_| TokenError::Claim(name))?;
    // A cast saturates: a negative date becomes the epoch, and one beyond the range its end.
    Ok(Some(Timestamp((seconds * 1000.0) as u64)))
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::ByteString;

    use super::*;

    #[test]
    fn numeric_dates_are_read_without_overflow() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("1300819380", Ok(1_300_819_380_000)),
            ("1300819380.5", Ok(1_300_819_380_500)),
            ("1e9", Ok(1_000_000_000_000)),
            ("-5", Ok(0)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("1e300", Ok(u64::MAX)),
            ("\"1300819380\"", Err(TokenError::Claim("exp"))),
            ("null", Err(TokenError::Claim("exp"))),
            ("[1]", Err(TokenError::Claim("exp"))),
        ] {
            let claims = JsonObject::parse(&ByteString::from(format!("{{\"exp\":{text}}}"))).unwrap();
            assert_eq!(numeric_date(&claims, "exp"), expected.map(|time| Some(Timestamp(time))), "{text}");
        }
        assert_eq!(numeric_date(&JsonObject::new(), "exp"), Ok(None));
    }
}
