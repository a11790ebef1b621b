use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use trunkline_protocol::{ByteString, JsonObject};

use super::{AlgorithmSet, SignatureAlgorithm, VerificationKey, VerifyError};

/// A JWS in compact serialization, split and decoded but not verified
/// ([RFC 7515 §7.1](https://www.rfc-editor.org/rfc/rfc7515#section-7.1)).
///
/// The header and payload are claims of the sender until [`CompactJws::verify`] has succeeded.
#[derive(Clone)]
pub struct CompactJws<'a> {
    signing_input: &'a str,
    algorithm: SignatureAlgorithm,
    header: JsonObject,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// The reason why a text is not an acceptable JWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwsError {
    /// The text is longer than [`CompactJws::MAX_BYTES`].
    #[error("the token is longer than {} bytes", CompactJws::MAX_BYTES)]
    TooLong,
    /// The text does not have three segments that are not empty.
    #[error("the token does not have three segments")]
    Segments,
    /// A segment is not base64url without padding.
    #[error("a segment of the token is not base64url without padding")]
    Encoding,
    /// The header or payload is not a JSON object with distinct members.
    #[error("the token is not made of JSON objects with distinct members")]
    Json,
    /// A header parameter has the wrong type.
    #[error("a header parameter has the wrong type")]
    Parameter,
    /// The header has `crit` or `b64`, and no extension is supported.
    #[error("the token needs an extension that is not supported")]
    Critical,
    /// `alg` is missing, or not in the allow-list.
    #[error("the signature algorithm is not allowed")]
    Algorithm,
}

impl<'a> CompactJws<'a> {
    /// The longest text that is read. Access tokens with many group claims have a few KiB.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Splits and decodes a JWS.
    ///
    /// # Errors
    /// The text is too long, is not exactly three segments of strict base64url, has a header that is not a JSON object
    /// with distinct members, needs an extension (`crit`,
    /// [RFC 7515 §4.1.11](https://www.rfc-editor.org/rfc/rfc7515#section-4.1.11)), or an algorithm that is not listed.
    pub fn parse(text: &'a str) -> Result<Self, JwsError> {
        if text.len() > Self::MAX_BYTES {
            return Err(JwsError::TooLong);
        }
        let (signing_input, signature) = text.rsplit_once('.').ok_or(JwsError::Segments)?;
        let (header, payload) = signing_input.split_once('.').ok_or(JwsError::Segments)?;
        if header.is_empty() || payload.is_empty() || signature.is_empty() || payload.contains('.') {
            return Err(JwsError::Segments);
        }
        let header = parse_object(decode_base64url(header)?)?;
        if header.get("crit").is_some() || header.get("b64").is_some() {
            return Err(JwsError::Critical);
        }
        for name in ["typ", "kid"] {
            if header.get(name).is_some_and(|value| value.as_text().is_none()) {
                return Err(JwsError::Parameter);
            }
        }
        let name = header.text("alg").ok_or(JwsError::Algorithm)?;
        let algorithm = SignatureAlgorithm::parse(&name).ok_or(JwsError::Algorithm)?;
        let (payload, signature) = (decode_base64url(payload)?, decode_base64url(signature)?);
        Ok(Self { signing_input, algorithm, header, payload, signature })
    }

    /// Returns the algorithm of the header.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Returns the header parameters.
    pub fn header(&self) -> &JsonObject {
        &self.header
    }

    /// Returns the identifier of the key that the sender signed with.
    pub fn key_id(&self) -> Option<ByteString> {
        self.header.text("kid")
    }

    /// Returns the media type of the token, in lower case and without the prefix `application/`
    /// ([RFC 7515 §4.1.9](https://www.rfc-editor.org/rfc/rfc7515#section-4.1.9)).
    pub fn media_type(&self) -> Option<String> {
        let typ = self.header.text("typ")?.to_ascii_lowercase();
        Some(typ.strip_prefix("application/").map(str::to_owned).unwrap_or(typ))
    }

    /// Returns the payload, which is not verified yet.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Parses the payload as the claims of a JWT, which are not verified yet.
    ///
    /// # Errors
    /// The payload is no JSON object with distinct members.
    pub fn claims(&self) -> Result<JsonObject, JwsError> {
        parse_object(self.payload.clone())
    }

    /// Verifies the signature with one key.
    ///
    /// # Errors
    /// The algorithm is not in `allowed`, needs another type of key, or the signature is wrong.
    pub fn verify(&self, key: &VerificationKey, allowed: AlgorithmSet) -> Result<(), VerifyError> {
        if !allowed.contains(self.algorithm) {
            return Err(VerifyError::Algorithm);
        }
        key.verify(self.algorithm, self.signing_input.as_bytes(), &self.signature)
    }
}

impl fmt::Debug for CompactJws<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The signing input with the signature is a bearer token, so only the header is printed.
        f.debug_struct("CompactJws").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

fn parse_object(bytes: Vec<u8>) -> Result<JsonObject, JwsError> {
    let text = String::from_utf8(bytes).map_err(|_| JwsError::Json)?;
    JsonObject::parse(&ByteString::from(text)).map_err(|_| JwsError::Json)
}

/// Decodes base64url without padding, whitespace or stray bits, so that one value has one spelling.
pub(crate) fn decode_base64url(text: &str) -> Result<Vec<u8>, JwsError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| JwsError::Encoding)
}

/// Encodes base64url without padding.
pub(crate) fn encode_base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assemble(header: &str, payload: &str) -> String {
        format!("{}.{}.AA", encode_base64url(header), encode_base64url(payload))
    }

    #[test]
    fn malformed_compact_jws_is_refused_with_its_reason() {
        let good = assemble(r#"{"alg":"ES256","typ":"at+jwt"}"#, "{}");
        assert!(CompactJws::parse(&good).is_ok());
        let header = encode_base64url(r#"{"alg":"ES256"}"#);
        for (text, expected) in [
            (String::new(), JwsError::Segments),
            ("abc".to_owned(), JwsError::Segments),
            (format!("{header}.e30"), JwsError::Segments),
            (format!("{header}.e30."), JwsError::Segments),
            (format!("{header}..AA"), JwsError::Segments),
            (".e30.AA".to_owned(), JwsError::Segments),
            ("..".to_owned(), JwsError::Segments),
            (format!("{header}.e30.AA.AA.AA"), JwsError::Segments),
            (format!("{header}.e30.AA.AA"), JwsError::Segments),
            (format!("{header}.e30.AA=="), JwsError::Encoding),
            (format!("{header}=.e30.AA"), JwsError::Encoding),
            (format!("{header}.e30.AB"), JwsError::Encoding),
            (format!("{header}.e30.A+/A"), JwsError::Encoding),
            (format!(" {header}.e30.AA"), JwsError::Encoding),
            (format!("{header}.e30.AA\n"), JwsError::Encoding),
            (format!("{header}.e3 0.AA"), JwsError::Encoding),
            (assemble("[]", "{}"), JwsError::Json),
            (assemble("\u{fffd}", "{}"), JwsError::Json),
            (assemble(r#"{"alg":"ES256","alg":"RS256"}"#, "{}"), JwsError::Json),
            (assemble(r#"{"alg":"ES256","\u0061lg":"none"}"#, "{}"), JwsError::Json),
            (assemble(r#"{"alg":"ES256","kid":7}"#, "{}"), JwsError::Parameter),
            (assemble(r#"{"alg":"ES256","typ":["JWT"]}"#, "{}"), JwsError::Parameter),
            (assemble(r#"{"alg":"ES256","crit":["exp"]}"#, "{}"), JwsError::Critical),
            (assemble(r#"{"alg":"ES256","crit":[]}"#, "{}"), JwsError::Critical),
            (assemble(r#"{"alg":"ES256","b64":false}"#, "{}"), JwsError::Critical),
            (assemble("{}", "{}"), JwsError::Algorithm),
            (assemble(r#"{"alg":"none"}"#, "{}"), JwsError::Algorithm),
            (assemble(r#"{"alg":"None"}"#, "{}"), JwsError::Algorithm),
            (assemble(r#"{"alg":"HS256"}"#, "{}"), JwsError::Algorithm),
            (assemble(r#"{"alg":["ES256"]}"#, "{}"), JwsError::Algorithm),
            (format!("{good}{}", "A".repeat(CompactJws::MAX_BYTES)), JwsError::TooLong),
        ] {
            assert_eq!(CompactJws::parse(&text).err(), Some(expected), "{text:.80}");
        }
        let repeated = assemble(r#"{"alg":"ES256"}"#, r#"{"sub":"a","sub":"b"}"#);
        assert_eq!(CompactJws::parse(&repeated).unwrap().claims(), Err(JwsError::Json));
    }

    #[test]
    fn media_type_ignores_case_and_prefix() {
        for (typ, expected) in [
            ("at+jwt", "at+jwt"),
            ("application/at+jwt", "at+jwt"),
            ("Application/AT+JWT", "at+jwt"),
            ("JWT", "jwt"),
        ] {
            let text = assemble(&format!(r#"{{"alg":"ES256","typ":"{typ}"}}"#), "{}");
            assert_eq!(CompactJws::parse(&text).unwrap().media_type().as_deref(), Some(expected), "{typ}");
        }
    }

    #[test]
    fn compact_jws_is_not_printed() {
        let text = assemble(r#"{"alg":"ES256"}"#, r#"{"sub":"sentinel"}"#);
        let printed = format!("{:?}", CompactJws::parse(&text).unwrap());
        assert_eq!(printed, "CompactJws { algorithm: Es256, .. }");
    }

    proptest! {
        #[test]
        fn compact_jws_parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let text = String::from_utf8_lossy(&bytes);
            if let Ok(jws) = CompactJws::parse(&text) {
                let _ = jws.claims();
            }
            let wrapped = format!("{}.{}.AA", encode_base64url(&bytes), encode_base64url(&bytes));
            if let Ok(jws) = CompactJws::parse(&wrapped) {
                let _ = jws.claims();
            }
        }
    }
}
