//! Authentication of a client by a signed assertion (`private_key_jwt`), after
//! [RFC 7523 §2.2](https://www.rfc-editor.org/rfc/rfc7523#section-2.2).

use std::time::Duration;

use trunkline_protocol::{JsonWriter, RawJson};
use trunkline_session::Timestamp;
use trunkline_transport::Secret;

use crate::jose::{SigningError, SigningKey, encode_base64url};

/// The value of `client_assertion_type` beside the assertion.
pub const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What a client asserts of itself at one authorization server.
///
/// ```
/// use trunkline_auth::client_assertion::ClientAssertion;
/// use trunkline_auth::jose::SigningKey;
/// use trunkline_session::Timestamp;
///
/// let key = SigningKey::from_pkcs8(&SigningKey::generate_es256()?, None)?;
/// let assertion = ClientAssertion { client_id: "app", issuer: "https://login.example", key_id: Some("k1") };
/// let signed = assertion.sign(&key, &[7; 16], Timestamp(1_800_000_000_000))?;
/// assert_eq!(signed.expose().split('.').count(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ClientAssertion<'a> {
    /// The identifier of the client: `iss` and `sub`.
    pub client_id: &'a str,
    /// The issuer of the authorization server: `aud`, as one text, so that no other server accepts the assertion.
    pub issuer: &'a str,
    /// The identifier of the key in the client's JWKS, if it has one.
    pub key_id: Option<&'a str>,
}

impl ClientAssertion<'_> {
    /// The time for which an assertion is valid.
    pub const LIFETIME: Duration = Duration::from_secs(60);

    /// Signs an assertion for one request. `random` becomes `jti`, and must not repeat.
    ///
    /// # Errors
    /// The operating system gives no random bytes for the signature.
    pub fn sign(&self, key: &SigningKey, random: &[u8; 16], now: Timestamp) -> Result<Secret, SigningError> {
        let seconds = now.0 / 1000;
        let mut claims = JsonWriter::with_capacity(256);
        claims.open_object();
        for (name, value) in [
            ("iss", self.client_id),
            ("sub", self.client_id),
            ("aud", self.issuer),
            ("jti", &encode_base64url(random)),
        ] {
            claims.plain_key(name);
            claims.string(value);
        }
        for (name, value) in [("iat", seconds), ("exp", seconds.saturating_add(Self::LIFETIME.as_secs()))] {
            claims.plain_key(name);
            claims.unsigned(value);
        }
        claims.close_object();
        let mut header = vec![("typ", RawJson::from_text("JWT"))];
        header.extend(self.key_id.map(|key_id| ("kid", RawJson::from_text(key_id))));
        key.sign_compact(&header, &claims.into_raw()).map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jose::fixtures::{ed25519_key, es256_key};
    use crate::jose::{AlgorithmSet, CompactJws};

    #[test]
    fn client_assertion_names_the_client_and_one_audience() {
        for (key, key_id) in [(es256_key(), Some("k1")), (ed25519_key(), None)] {
            let assertion = ClientAssertion { client_id: "a\"pp", issuer: "https://login.example/", key_id };
            let signed = assertion.sign(&key, &[7; 16], Timestamp(1_800_000_000_999)).unwrap();
            let jws = CompactJws::parse(signed.expose()).unwrap();
            assert_eq!(jws.verify(key.public(), AlgorithmSet::all()), Ok(()));
            assert_eq!(jws.key_id().as_deref(), key_id);
            let claims: serde_json::Value = serde_json::from_slice(jws.payload()).unwrap();
            let expected = serde_json::json!({
                "iss": "a\"pp", "sub": "a\"pp", "aud": "https://login.example/", "jti": encode_base64url([7; 16]),
                "iat": 1_800_000_000, "exp": 1_800_000_060,
            });
            assert_eq!(claims, expected);
        }
        assert!(ClientAssertion::LIFETIME <= Duration::from_secs(300));
    }
}
