use trunkline_protocol::{JsonWriter, RawJson};
use trunkline_session::Timestamp;
use trunkline_transport::Secret;

use super::{PROOF_TYPE, TargetUri, token_hash};
use crate::jose::{SigningError, SigningKey, encode_base64url};

/// What a client proves with one request ([RFC 9449 §4.2](https://www.rfc-editor.org/rfc/rfc9449#section-4.2)).
///
/// Every request has a proof of its own, retries included.
///
/// ```
/// use trunkline_auth::dpop::{DpopProof, TargetUri};
/// use trunkline_auth::jose::SigningKey;
/// use trunkline_session::Timestamp;
///
/// let key = SigningKey::from_pkcs8(&SigningKey::generate_es256()?, None)?;
/// let uri = "https://hub.example/mcp?x=1".parse()?;
/// let target = TargetUri::new(&uri).ok_or("not an absolute URI")?;
/// let proof = DpopProof { method: "POST", target: &target, access_token: Some("token"), nonce: None };
/// let header = proof.sign(&key, &[7; 16], Timestamp(1_800_000_000_000))?;
/// assert!(header.expose().starts_with("ey"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct DpopProof<'a> {
    /// The method of the request: `htm`.
    pub method: &'a str,
    /// The URI of the request: `htu`.
    pub target: &'a TargetUri,
    /// The access token that the request carries, of which `ath` is the digest; none at a token endpoint.
    pub access_token: Option<&'a str>,
    /// The last nonce of the server.
    pub nonce: Option<&'a str>,
}

impl DpopProof<'_> {
    /// Signs the proof for the header `DPoP`. `random` becomes `jti`, and must not repeat.
    ///
    /// # Errors
    /// The operating system gives no random bytes for the signature.
    pub fn sign(&self, key: &SigningKey, random: &[u8; 16], now: Timestamp) -> Result<Secret, SigningError> {
        let mut claims = JsonWriter::with_capacity(256);
        claims.open_object();
        let hash = self.access_token.map(token_hash);
        for (name, value) in [
            ("jti", Some(encode_base64url(random).as_str())),
            ("htm", Some(self.method)),
            ("htu", Some(self.target.as_str())),
            ("ath", hash.as_deref()),
            ("nonce", self.nonce),
        ] {
            if let Some(value) = value {
                claims.plain_key(name);
                claims.string(value);
            }
        }
        claims.plain_key("iat");
        claims.unsigned(now.0 / 1000);
        claims.close_object();
        let header = [("typ", RawJson::from_text(PROOF_TYPE)), ("jwk", key.public().to_jwk())];
        key.sign_compact(&header, &claims.into_raw()).map(Secret::new)
    }
}

impl std::fmt::Debug for DpopProof<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DpopProof")
            .field("method", &self.method)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::jose::fixtures::{ED_X, ed25519_key};
    use crate::jose::{AlgorithmSet, CompactJws};

    #[test]
    fn proof_has_the_claims_of_its_request() {
        let key = ed25519_key();
        let target = TargetUri::parse("https://Hub.example/mcp?q#f").unwrap();
        let plain = DpopProof { method: "POST", target: &target, access_token: None, nonce: None };
        // As `sha256sum` computes it.
        let hash = "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A";
        let jti = encode_base64url([9; 16]);
        let base = json!({"jti": jti, "htm": "POST", "htu": "https://hub.example/mcp", "iat": 1_800_000_000});
        let with = |name: &str, value: &str| {
            let mut claims = base.clone();
            claims[name] = value.into();
            claims
        };
        for (proof, expected) in [
            (plain, base.clone()),
            (DpopProof { access_token: Some("token"), ..plain }, with("ath", hash)),
            (DpopProof { nonce: Some("n"), ..plain }, with("nonce", "n")),
        ] {
            let signed = proof.sign(&key, &[9; 16], Timestamp(1_800_000_000_999)).unwrap();
            let jws = CompactJws::parse(signed.expose()).unwrap();
            assert_eq!(jws.verify(key.public(), AlgorithmSet::all()), Ok(()));
            let header: Value = serde_json::from_str(jws.header().to_raw().as_str()).unwrap();
            let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": ED_X});
            assert_eq!(header, json!({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk}));
            assert_eq!(serde_json::from_slice::<Value>(jws.payload()).unwrap(), expected);
        }
        assert!(!format!("{:?}", DpopProof { access_token: Some("sentinel"), ..plain }).contains("sentinel"));
    }
}
