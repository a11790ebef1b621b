use trunkline_protocol::{ByteString, JsonObject};

use super::{CompactJws, PublicJwk};

/// The usable public keys of a JWKS document
/// ([RFC 7517 §5](https://www.rfc-editor.org/rfc/rfc7517#section-5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    keys: Vec<PublicJwk>,
}

/// The reason why a document is not a JWKS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwkSetError {
    /// The document is not a JSON object with an array `keys`.
    #[error("the document is not a JSON object with an array `keys`")]
    Json,
    /// The document has more than [`JwkSet::MAX_KEYS`] keys.
    #[error("the document has more than {} keys", JwkSet::MAX_KEYS)]
    TooMany,
}

impl JwkSet {
    /// The most keys that a document may have.
    pub const MAX_KEYS: usize = 64;

    /// The most keys that are tried for a token without `kid`, so that it does not cost one verification for each key
    /// of the set.
    pub const MAX_CANDIDATES: usize = 4;

    /// Reads a JWKS document. Keys of unknown types, and keys that cannot be used, are skipped, as RFC 7517 §5
    /// recommends.
    ///
    /// # Errors
    /// The document is not a JSON object with an array `keys`, or has too many keys.
    pub fn parse(document: &[u8]) -> Result<Self, JwkSetError> {
        let text = ByteString::try_from(document).map_err(|_| JwkSetError::Json)?;
        let document = JsonObject::parse(&text).map_err(|_| JwkSetError::Json)?;
        let keys = document.get("keys").ok_or(JwkSetError::Json)?;
        let keys = keys.elements().map_err(|_| JwkSetError::Json)?;
        if keys.len() > Self::MAX_KEYS {
            return Err(JwkSetError::TooMany);
        }
        Ok(keys.iter().filter_map(|key| PublicJwk::parse(key).ok()).collect())
    }

    /// Iterates over the keys that may have signed a token, at most [`JwkSet::MAX_CANDIDATES`].
    ///
    /// With a `kid` in its header those are the keys with that identifier, without one all keys that allow its
    /// algorithm.
    pub fn candidates(&self, jws: &CompactJws<'_>) -> impl Iterator<Item = &PublicJwk> {
        let (key_id, algorithm) = (jws.key_id(), jws.algorithm());
        self.keys
            .iter()
            .filter(move |key| key_id.is_none() || key.key_id() == key_id.as_deref())
            .filter(move |key| key.allows(algorithm))
            .take(Self::MAX_CANDIDATES)
    }

    /// Iterates over all keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PublicJwk> {
        self.keys.iter()
    }

    /// Reports whether every key of this set is also in `other`; if not, keys were withdrawn.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.keys.iter().all(|key| other.keys.contains(key))
    }
}

impl FromIterator<PublicJwk> for JwkSet {
    fn from_iter<I: IntoIterator<Item = PublicJwk>>(keys: I) -> Self {
        Self { keys: keys.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode_base64url;
    use super::super::fixtures::{EC_X, EC_Y, ED_X, RSA_N};
    use super::*;

    #[test]
    fn key_set_skips_unusable_keys_and_looks_up_by_kid_and_algorithm() {
        let document = format!(
            r#"{{"extra":1,"keys":[
                {{"kty":"EC","crv":"P-256","x":"{EC_X}","y":"{EC_Y}","kid":"a"}},
                {{"kty":"RSA","n":"{RSA_N}","e":"AQAB","kid":"a","alg":"RS256"}},
                {{"kty":"OKP","crv":"Ed25519","x":"{ED_X}","kid":"b"}},
                {{"kty":"OKP","crv":"Ed25519","x":"{ED_X}"}},
                {{"kty":"RSA","n":"{RSA_N}","e":"AQAB","kid":"c","use":"enc"}},
                {{"kty":"oct","k":"AAAA","kid":"a"}},
                {{"kty":"new","kid":"a"}}, 7, null
            ]}}"#
        );
        let set = JwkSet::parse(document.as_bytes()).unwrap();
        assert_eq!(set.iter().len(), 5);
        for (header, expected) in [
            (r#"{"alg":"ES256","kid":"a"}"#, 1),
            (r#"{"alg":"RS256","kid":"a"}"#, 1),
            (r#"{"alg":"PS256","kid":"a"}"#, 0),
            (r#"{"alg":"EdDSA","kid":"a"}"#, 0),
            (r#"{"alg":"EdDSA","kid":"b"}"#, 1),
            (r#"{"alg":"EdDSA"}"#, 2),
            (r#"{"alg":"RS256","kid":"c"}"#, 0),
            (r#"{"alg":"ES256","kid":"d"}"#, 0),
        ] {
            let text = format!("{}.e30.AA", encode_base64url(header));
            let jws = CompactJws::parse(&text).unwrap();
            assert_eq!(set.candidates(&jws).count(), expected, "{header}");
        }
    }

    #[test]
    fn malformed_or_oversized_key_set_is_refused() {
        let many = format!(r#"{{"keys":[{}]}}"#, vec!["{}"; JwkSet::MAX_KEYS + 1].join(","));
        for (document, expected) in [
            ("", JwkSetError::Json),
            ("[]", JwkSetError::Json),
            ("{}", JwkSetError::Json),
            (r#"{"keys":{}}"#, JwkSetError::Json),
            (r#"{"keys":[],"keys":[]}"#, JwkSetError::Json),
            (&many, JwkSetError::TooMany),
        ] {
            assert_eq!(JwkSet::parse(document.as_bytes()), Err(expected), "{document:.30}");
        }
        assert_eq!(JwkSet::parse(b"\xff"), Err(JwkSetError::Json));
        assert_eq!(JwkSet::parse(br#"{"keys":[]}"#), Ok(JwkSet::default()));
    }

    #[test]
    fn token_without_kid_is_tried_with_few_keys() {
        let key = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{ED_X}"}}"#);
        let document = format!(r#"{{"keys":[{}]}}"#, vec![key.as_str(); 20].join(","));
        let set = JwkSet::parse(document.as_bytes()).unwrap();
        let text = format!("{}.e30.AA", encode_base64url(r#"{"alg":"EdDSA"}"#));
        assert_eq!(set.candidates(&CompactJws::parse(&text).unwrap()).count(), JwkSet::MAX_CANDIDATES);
    }
}
