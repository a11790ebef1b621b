use trunkline_protocol::{ByteString, JsonObject};
use trunkline_session::Timestamp;

use super::claims::text;
use super::{AccessTokenClaims, TokenError, TokenRules};
use crate::jose::{CompactJws, JwkSet, JwsError};

/// A JWT access token that is decoded but not verified.
///
/// Only its issuer can be read, to choose the rules and keys that verify it.
///
/// ```
/// use trunkline_auth::access_token::{TokenError, TokenRules, UnverifiedToken};
/// use trunkline_auth::jose::JwkSet;
/// use trunkline_session::Timestamp;
///
/// let rules = [TokenRules::new("https://login.example", ["https://hub.example/mcp"])];
/// # let (keys, now) = (JwkSet::default(), Timestamp(0));
/// let check = |token: &str| {
///     let token = UnverifiedToken::parse(token)?;
///     let rules = token.choose_rules(&rules)?;
///     token.verify(rules, &keys, now)
/// };
/// assert_eq!(check("garbage"), Err(TokenError::Malformed));
/// ```
#[derive(Debug)]
pub struct UnverifiedToken<'a> {
    jws: CompactJws<'a>,
    claims: JsonObject,
    issuer: ByteString,
}

impl<'a> UnverifiedToken<'a> {
    /// Decodes a token.
    ///
    /// # Errors
    /// The token is no JWS with JSON claims, has an algorithm that is never allowed, or no issuer.
    pub fn parse(token: &'a str) -> Result<Self, TokenError> {
        let jws = CompactJws::parse(token).map_err(|error| match error {
            JwsError::Algorithm => TokenError::Algorithm,
            _ => TokenError::Malformed,
        })?;
        let claims = jws.claims().map_err(|_| TokenError::Malformed)?;
        let issuer = text(&claims, "iss")?.ok_or(TokenError::Claim("iss"))?;
        Ok(Self { jws, claims, issuer })
    }

    /// Returns the issuer that the token names.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the rules of the issuer that the token names.
    ///
    /// # Errors
    /// There are none for that issuer.
    pub fn choose_rules<'r>(&self, rules: &'r [TokenRules]) -> Result<&'r TokenRules, TokenError> {
        rules.iter().find(|rules| rules.issuer == *self.issuer).ok_or(TokenError::Issuer)
    }

    /// Verifies the token after [RFC 9068 §4](https://www.rfc-editor.org/rfc/rfc9068#section-4).
    ///
    /// # Errors
    /// A check fails. After [`TokenError::UnknownKey`] the keys may be fetched again ([`super::KeyCache`]).
    pub fn verify(
        self,
        rules: &TokenRules,
        keys: &JwkSet,
        now: Timestamp,
    ) -> Result<AccessTokenClaims, TokenError> {
        self.check_header(rules)?;
        self.check_signature(rules, keys)?;
        rules.check_type(self.jws.media_type().as_deref(), &self.claims)?;
        let expires = rules.check_time(&self.claims, now)?.ok_or(TokenError::Claim("exp"))?;
        rules.check_audience(self.claims.get("aud"))?;
        let subject = text(&self.claims, "sub")?;
        AccessTokenClaims::read(self.claims, self.issuer, subject, Some(expires))
    }

    /// Checks what needs no key: the issuer, and that the algorithm is allowed.
    ///
    /// # Errors
    /// One of both is another.
    pub fn check_header(&self, rules: &TokenRules) -> Result<(), TokenError> {
        if rules.issuer != *self.issuer {
            return Err(TokenError::Issuer);
        }
        if !rules.algorithms.contains(self.jws.algorithm()) {
            return Err(TokenError::Algorithm);
        }
        Ok(())
    }

    fn check_signature(&self, rules: &TokenRules, keys: &JwkSet) -> Result<(), TokenError> {
        let mut candidates = keys.candidates(&self.jws).peekable();
        // Without `kid` a wrong signature may mean that the key is newer than the known ones.
        let may_be_newer = candidates.peek().is_none() || self.jws.key_id().is_none();
        if candidates.any(|key| self.jws.verify(key.key(), rules.algorithms).is_ok()) {
            Ok(())
        } else if may_be_newer {
            Err(TokenError::UnknownKey)
        } else {
            Err(TokenError::Signature)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_protocol::RawJson;

    use super::*;
    use crate::access_token::TokenTyping;
    use crate::jose::fixtures::{ed25519_key, es256_key, jwk};
    use crate::jose::{SignatureAlgorithm, SigningKey, encode_base64url};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const ISSUER: &str = "https://login.example";
    const RESOURCE: &str = "https://hub.example/mcp";

    /// The claims of a valid token, with changes; `null` removes a claim.
    fn claims(changes: &Value) -> RawJson {
        let seconds = NOW.0 / 1000;
        let mut claims = json!({
            "iss": ISSUER, "sub": "ann", "aud": RESOURCE, "exp": seconds + 600, "iat": seconds, "client_id": "app",
            "jti": "1", "scope": "mcp:use files:read",
        });
        let object = claims.as_object_mut().unwrap();
        for (name, value) in changes.as_object().unwrap() {
            object.insert(name.clone(), value.clone());
            if value.is_null() {
                object.remove(name);
            }
        }
        RawJson::from(claims)
    }

    fn sign(key: &SigningKey, kid: &str, typ: Option<&str>, changes: &Value) -> String {
        let mut header = vec![("kid", RawJson::from_text(kid))];
        header.extend(typ.map(|typ| ("typ", RawJson::from_text(typ))));
        key.sign_compact(&header, &claims(changes)).unwrap()
    }

    fn check(token: &str, keys: &JwkSet, rules: &[TokenRules]) -> Result<AccessTokenClaims, TokenError> {
        let token = UnverifiedToken::parse(token)?;
        let rules = token.choose_rules(rules)?;
        token.verify(rules, keys, NOW)
    }

    fn rules() -> TokenRules {
        TokenRules::new(ISSUER, [RESOURCE])
    }

    #[test]
    fn valid_access_token_gives_its_claims() {
        let key = es256_key();
        let keys: JwkSet = [jwk(&key, "a")].into_iter().collect();
        let seconds = NOW.0 / 1000;
        let cases = [
            (json!({}), "app", vec!["mcp:use", "files:read"], None),
            (json!({"aud": ["other", RESOURCE]}), "app", vec!["mcp:use", "files:read"], None),
            (json!({"scope": null, "scp": ["a", "b"]}), "app", vec!["a", "b"], None),
            (json!({"scope": null, "scp": "a b"}), "app", vec!["a", "b"], None),
            (json!({"scope": ""}), "app", vec![], None),
            (json!({"scope": null}), "app", vec![], None),
            (json!({"client_id": null, "azp": "old"}), "old", vec!["mcp:use", "files:read"], None),
            (json!({"nbf": seconds + 60}), "app", vec!["mcp:use", "files:read"], None),
            (json!({"exp": seconds - 59}), "app", vec!["mcp:use", "files:read"], None),
            (json!({"cnf": {"jkt": "thumb"}}), "app", vec!["mcp:use", "files:read"], Some("thumb")),
        ];
        for (changes, client, scopes, thumbprint) in cases {
            for typ in ["at+jwt", "application/at+jwt", "AT+JWT"] {
                let token = sign(&key, "a", Some(typ), &changes);
                let claims = check(&token, &keys, &[rules()]).unwrap();
                assert_eq!((&*claims.issuer, &*claims.subject), (ISSUER, "ann"));
                assert_eq!(claims.client_id.as_deref(), Some(client), "{changes}");
                assert_eq!(claims.scopes, scopes, "{changes}");
                assert_eq!(claims.key_thumbprint.as_deref(), thumbprint, "{changes}");
                assert_eq!(claims.claims.text("jti").as_deref(), Some("1"));
            }
        }
    }

    #[test]
    fn access_tokens_are_refused_with_their_reason() {
        let key = es256_key();
        let keys: JwkSet = [jwk(&key, "a")].into_iter().collect();
        let seconds = NOW.0 / 1000;
        let cases = [
            (json!({"exp": seconds - 60}), TokenError::Expired),
            (json!({"exp": 0}), TokenError::Expired),
            (json!({"exp": -1}), TokenError::Expired),
            (json!({"exp": null}), TokenError::Claim("exp")),
            (json!({"exp": "soon"}), TokenError::Claim("exp")),
            (json!({"nbf": seconds + 61}), TokenError::NotYetValid),
            (json!({"nbf": "later"}), TokenError::Claim("nbf")),
            (json!({"iss": "https://evil.example"}), TokenError::Issuer),
            (json!({"iss": "https://login.example/"}), TokenError::Issuer),
            (json!({"iss": "HTTPS://login.example"}), TokenError::Issuer),
            (json!({"iss": null}), TokenError::Claim("iss")),
            (json!({"iss": 7}), TokenError::Claim("iss")),
            (json!({"aud": "https://hub.example"}), TokenError::Audience),
            (json!({"aud": "https://hub.example/mcp/"}), TokenError::Audience),
            (json!({"aud": []}), TokenError::Audience),
            (json!({"aud": ["a", "b"]}), TokenError::Audience),
            (json!({"aud": null}), TokenError::Claim("aud")),
            (json!({"aud": {"a": RESOURCE}}), TokenError::Claim("aud")),
            (json!({"aud": [RESOURCE, 7]}), TokenError::Claim("aud")),
            (json!({"sub": null}), TokenError::Claim("sub")),
            (json!({"sub": ""}), TokenError::Claim("sub")),
            (json!({"sub": 7}), TokenError::Claim("sub")),
            (json!({"sub": "ann\n2026-11-19T21:00:00Z INFO granted"}), TokenError::Claim("sub")),
            (json!({"sub": "ann\u{1b}[2J"}), TokenError::Claim("sub")),
            (json!({"client_id": "app\u{85}"}), TokenError::Claim("client_id")),
            (json!({"scope": 7}), TokenError::Claim("scope")),
            (json!({"client_id": 7}), TokenError::Claim("client_id")),
            (json!({"cnf": "x"}), TokenError::Claim("cnf")),
            (json!({"cnf": {"x5t#S256": "x"}}), TokenError::Confirmation),
            (json!({"cnf": {"jkt": "a", "x5t#S256": "x"}}), TokenError::Confirmation),
            (json!({"cnf": {}}), TokenError::Confirmation),
        ];
        for (changes, expected) in cases {
            let token = sign(&key, "a", Some("at+jwt"), &changes);
            assert_eq!(check(&token, &keys, &[rules()]), Err(expected), "{changes}");
        }
        let none = TokenRules::new(ISSUER, [""; 0]);
        let token = sign(&key, "a", Some("at+jwt"), &json!({}));
        assert_eq!(check(&token, &keys, &[none]), Err(TokenError::Audience), "no audience is configured");
    }

    #[test]
    fn forged_access_tokens_are_refused() {
        let key = es256_key();
        let keys: JwkSet = [jwk(&key, "a"), jwk(&ed25519_key(), "b")].into_iter().collect();
        let good = sign(&key, "a", Some("at+jwt"), &json!({}));
        assert!(check(&good, &keys, &[rules()]).is_ok());
        let (input, signature) = good.rsplit_once('.').unwrap();
        let (header, _) = input.split_once('.').unwrap();
        let other_claims = encode_base64url(claims(&json!({"sub": "root"})).as_str());
        let unsigned = encode_base64url(r#"{"alg":"none","typ":"at+jwt"}"#);
        let only_rsa =
            TokenRules { algorithms: [SignatureAlgorithm::Rs256].into_iter().collect(), ..rules() };
        for (case, token, rules, expected) in [
            ("garbage", "garbage".to_owned(), rules(), TokenError::Malformed),
            ("empty", String::new(), rules(), TokenError::Malformed),
            ("two tokens", format!("{good} {good}"), rules(), TokenError::Malformed),
            ("other claims", format!("{header}.{other_claims}.{signature}"), rules(), TokenError::Signature),
            ("alg none", format!("{unsigned}.{other_claims}.AA"), rules(), TokenError::Algorithm),
            (
                "other key",
                sign(&es256_key(), "a", Some("at+jwt"), &json!({})),
                rules(),
                TokenError::Signature,
            ),
            (
                "kid of a key of another type",
                sign(&key, "b", Some("at+jwt"), &json!({})),
                rules(),
                TokenError::UnknownKey,
            ),
            ("unknown kid", sign(&key, "c", Some("at+jwt"), &json!({})), rules(), TokenError::UnknownKey),
            ("algorithm not allowed", good.clone(), only_rsa, TokenError::Algorithm),
        ] {
            assert_eq!(check(&token, &keys, &[rules]), Err(expected), "{case}");
        }
        let without_kid =
            key.sign_compact(&[("typ", RawJson::from_text("at+jwt"))], &claims(&json!({}))).unwrap();
        assert!(check(&without_kid, &keys, &[rules()]).is_ok());
        let newer: JwkSet = [jwk(&es256_key(), "a")].into_iter().collect();
        assert_eq!(check(&without_kid, &newer, &[rules()]), Err(TokenError::UnknownKey));
    }

    #[test]
    fn tokens_of_other_types_are_refused() {
        let key = es256_key();
        let keys: JwkSet = [jwk(&key, "a")].into_iter().collect();
        let untyped = TokenRules { typing: TokenTyping::AllowUntyped, ..rules() };
        let id_token = json!({"at_hash": "x", "nonce": "n"});
        let logout = json!({"events": {}});
        for (typ, changes, strict, lenient) in [
            (Some("at+jwt"), json!({}), true, true),
            (None, json!({}), false, true),
            (Some("JWT"), json!({}), false, true),
            (Some("JWT"), id_token.clone(), false, false),
            (None, id_token, false, false),
            (Some("JWT"), logout, false, false),
            (Some("oauth-id-jag+jwt"), json!({}), false, false),
            (Some("dpop+jwt"), json!({}), false, false),
            (Some("logout+jwt"), json!({}), false, false),
            (Some("secevent+jwt"), json!({}), false, false),
            (Some("at+jwt2"), json!({}), false, false),
            (Some(""), json!({}), false, false),
        ] {
            let token = sign(&key, "a", typ, &changes);
            for (rules, accepted) in [(rules(), strict), (untyped.clone(), lenient)] {
                let expected = if accepted { None } else { Some(TokenError::Type) };
                assert_eq!(check(&token, &keys, &[rules]).err(), expected, "{typ:?}");
            }
        }
    }

    #[test]
    fn rules_are_chosen_by_issuer_and_keys_of_others_do_not_count() {
        let (first, second) = (es256_key(), es256_key());
        let other = "https://other.example";
        let all = [rules(), TokenRules::new(other, ["https://other.example/api"])];
        let keys: JwkSet = [jwk(&first, "a")].into_iter().collect();
        // The other issuer signs a token in the name of the first.
        let forged = sign(&second, "a", Some("at+jwt"), &json!({}));
        assert_eq!(check(&forged, &keys, &all), Err(TokenError::Signature));
        let token = sign(&second, "a", Some("at+jwt"), &json!({"iss": other}));
        let token = UnverifiedToken::parse(&token).unwrap();
        assert_eq!(token.issuer(), other);
        let chosen = token.choose_rules(&all).unwrap();
        assert_eq!(chosen.issuer, other);
        let own: JwkSet = [jwk(&second, "a")].into_iter().collect();
        assert_eq!(token.verify(chosen, &own, NOW), Err(TokenError::Audience));
    }

    #[test]
    fn skew_is_bounded_whatever_is_configured() {
        let key = es256_key();
        let keys: JwkSet = [jwk(&key, "a")].into_iter().collect();
        let token = sign(&key, "a", Some("at+jwt"), &json!({"exp": NOW.0 / 1000 - 61}));
        let lax = TokenRules { skew: std::time::Duration::from_secs(3600), ..rules() };
        assert_eq!(check(&token, &keys, &[lax]), Err(TokenError::Expired));
    }
}
