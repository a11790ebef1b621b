use ring::digest::{SHA256, digest};
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{ByteString, JsonObject, JsonWriter, RawJson};

use super::{KeyType, SignatureAlgorithm, decode_base64url, encode_base64url};

/// A public key that verifies signatures.
///
/// The lengths of its parts are checked when it is read; whether a point is on its curve is checked by each
/// verification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerificationKey {
    /// An uncompressed point on P-256, 65 bytes.
    P256(Vec<u8>),
    /// An uncompressed point on P-384, 97 bytes.
    P384(Vec<u8>),
    /// An RSA key of 2,048 to 8,192 bits.
    Rsa {
        /// The modulus, big-endian, without leading zeros.
        modulus: Vec<u8>,
        /// The public exponent, big-endian, without leading zeros.
        exponent: Vec<u8>,
    },
    /// An Ed25519 public key, 32 bytes.
    Ed25519(Vec<u8>),
}

/// The reason why a JSON value is not a public key that can be used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwkError {
    /// The value is not a JSON object with distinct members.
    #[error("the key is not a JSON object with distinct members")]
    Json,
    /// The type or curve of the key is not supported.
    #[error("the type or curve of the key is not supported")]
    Unsupported,
    /// The key has private or symmetric members.
    #[error("the key has private members")]
    Private,
    /// A member that the type of key needs is missing or invalid.
    #[error("a member of the key is missing or invalid")]
    Member,
    /// The modulus of an RSA key has fewer than 2,048 or more than 8,192 bits.
    #[error("the RSA key does not have between 2048 and 8192 bits")]
    RsaSize,
}

/// The members of private and symmetric keys
/// ([RFC 7518 §6](https://www.rfc-editor.org/rfc/rfc7518#section-6)).
const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

impl VerificationKey {
    /// Reads the key of a JWK, without its metadata.
    ///
    /// # Errors
    /// The type is not supported, a member is missing or invalid, or the key is private.
    pub fn from_jwk(jwk: &JsonObject) -> Result<Self, JwkError> {
        if PRIVATE_MEMBERS.iter().any(|name| jwk.get(name).is_some()) {
            return Err(JwkError::Private);
        }
        let kty = jwk.text("kty").ok_or(JwkError::Member)?;
        let curve = jwk.text("crv");
        match (&*kty, curve.as_deref()) {
            ("EC", Some("P-256")) => Ok(Self::P256(point(jwk, 32)?)),
            ("EC", Some("P-384")) => Ok(Self::P384(point(jwk, 48)?)),
            ("OKP", Some("Ed25519")) => Ok(Self::Ed25519(fixed(jwk, "x", 32)?)),
            ("RSA", _) => rsa(jwk),
            ("EC" | "OKP", None) => Err(JwkError::Member),
            _ => Err(JwkError::Unsupported),
        }
    }

    /// Returns the type of the key.
    pub fn key_type(&self) -> KeyType {
        match self {
            Self::P256(_) => KeyType::P256,
            Self::P384(_) => KeyType::P384,
            Self::Rsa { .. } => KeyType::Rsa,
            Self::Ed25519(_) => KeyType::Ed25519,
        }
    }

    /// Writes the required members of the JWK in lexicographic order, without whitespace: the form of which
    /// [RFC 7638 §3](https://www.rfc-editor.org/rfc/rfc7638#section-3) takes the digest.
    pub fn to_jwk(&self) -> RawJson {
        let mut writer = JsonWriter::with_capacity(160);
        writer.open_object();
        let mut members = |list: &[(&'static str, &str)]| {
            for (key, value) in list {
                writer.plain_key(key);
                writer.string(value);
            }
        };
        match self {
            Self::P256(point) | Self::P384(point) => {
                let curve = if self.key_type() == KeyType::P256 { "P-256" } else { "P-384" };
                let (_, coordinates) = point.split_first().unwrap_or((&0, &[]));
                let (x, y) = coordinates.split_at(coordinates.len() / 2);
                members(&[
                    ("crv", curve),
                    ("kty", "EC"),
                    ("x", &encode_base64url(x)),
                    ("y", &encode_base64url(y)),
                ]);
            }
            Self::Rsa { modulus, exponent } => members(&[
                ("e", &encode_base64url(exponent)),
                ("kty", "RSA"),
                ("n", &encode_base64url(modulus)),
            ]),
            Self::Ed25519(x) => members(&[("crv", "Ed25519"), ("kty", "OKP"), ("x", &encode_base64url(x))]),
        }
        writer.close_object();
        writer.into_raw()
    }

    /// Returns the SHA-256 thumbprint of [RFC 7638](https://www.rfc-editor.org/rfc/rfc7638), base64url, which
    /// `cnf.jkt` of a bound token holds.
    pub fn thumbprint(&self) -> String {
        encode_base64url(digest(&SHA256, self.to_jwk().as_str().as_bytes()))
    }
}

fn fixed(jwk: &JsonObject, name: &str, length: usize) -> Result<Vec<u8>, JwkError> {
    let bytes = member(jwk, name)?;
    if bytes.len() == length { Ok(bytes) } else { Err(JwkError::Member) }
}

fn member(jwk: &JsonObject, name: &str) -> Result<Vec<u8>, JwkError> {
    let text = jwk.text(name).ok_or(JwkError::Member)?;
    decode_base64url(&text).map_err(|_| JwkError::Member)
}

/// Reads an uncompressed point; coordinates have the full length of the field
/// ([RFC 7518 §6.2.1.2](https://www.rfc-editor.org/rfc/rfc7518#section-6.2.1.2)).
fn point(jwk: &JsonObject, length: usize) -> Result<Vec<u8>, JwkError> {
    let mut point = vec![4];
    point.extend(fixed(jwk, "x", length)?);
    point.extend(fixed(jwk, "y", length)?);
    Ok(point)
}

fn rsa(jwk: &JsonObject) -> Result<VerificationKey, JwkError> {
    let (modulus, exponent) = (member(jwk, "n")?, member(jwk, "e")?);
    // A leading zero would give one key two thumbprints.
    if modulus.first().is_none_or(|byte| *byte == 0) || exponent.first().is_none_or(|byte| *byte == 0) {
        return Err(JwkError::Member);
    }
    let zeros = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
    let bits = (modulus.len() * 8).saturating_sub(zeros);
    if !(2048..=8192).contains(&bits) {
        return Err(JwkError::RsaSize);
    }
    if exponent.len() > 8 {
        return Err(JwkError::Member);
    }
    Ok(VerificationKey::Rsa { modulus, exponent })
}

/// A public key with the metadata of its JWK
/// ([RFC 7517 §4](https://www.rfc-editor.org/rfc/rfc7517#section-4)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicJwk {
    key_id: Option<ByteString>,
    /// `Some(None)` for an algorithm that is not supported, with which nothing verifies.
    algorithm: Option<Option<SignatureAlgorithm>>,
    verifies: bool,
    key: VerificationKey,
}

impl PublicJwk {
    /// Reads a JWK.
    ///
    /// # Errors
    /// As [`VerificationKey::from_jwk`], or a member of the metadata has the wrong type.
    pub fn parse(value: &RawJson) -> Result<Self, JwkError> {
        let jwk = value.members().map_err(|_| JwkError::Json)?;
        Self::from_members(&jwk)
    }

    /// Reads a JWK from its members.
    ///
    /// # Errors
    /// As [`PublicJwk::parse`].
    pub fn from_members(jwk: &JsonObject) -> Result<Self, JwkError> {
        let key = VerificationKey::from_jwk(jwk)?;
        let optional = |name: &str| match jwk.get(name) {
            None => Ok(None),
            Some(value) => value.to_text().map(Some).ok_or(JwkError::Member),
        };
        let for_signatures = optional("use")?.is_none_or(|purpose| purpose == "sig");
        let operations_allow = match jwk.get("key_ops") {
            None => true,
            Some(value) if value.kind() == JsonKind::Array => {
                let operations = value.decode::<Vec<String>>().map_err(|_| JwkError::Member)?;
                operations.iter().any(|operation| operation == "verify")
            }
            Some(_) => return Err(JwkError::Member),
        };
        Ok(Self {
            key_id: optional("kid")?.map(|kid| ByteString::from(&*kid)),
            algorithm: optional("alg")?.map(|name| SignatureAlgorithm::parse(&name)),
            verifies: for_signatures && operations_allow,
            key,
        })
    }

    /// Returns the identifier of the key.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Returns the key itself.
    pub fn key(&self) -> &VerificationKey {
        &self.key
    }

    /// Reports whether the key may verify signatures of an algorithm: its type fits, and its `alg`, `use` and
    /// `key_ops` do not exclude it.
    pub fn allows(&self, algorithm: SignatureAlgorithm) -> bool {
        self.verifies
            && self.key.key_type() == algorithm.key_type()
            && self.algorithm.is_none_or(|only| only == Some(algorithm))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{EC_X, EC_Y, ED_X, RSA_N, THUMBPRINT_N};
    use super::*;

    fn parse(text: &str) -> Result<PublicJwk, JwkError> {
        PublicJwk::parse(&RawJson::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn thumbprints_match_the_examples_of_the_rfcs() {
        for (jwk, expected) in [
            // RFC 7638 §3.1
            (
                format!(
                    r#"{{"kty":"RSA","n":"{THUMBPRINT_N}","e":"AQAB","alg":"RS256","kid":"2011-04-29"}}"#
                ),
                "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
            ),
            // RFC 8037 A.3
            (
                format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{ED_X}"}}"#),
                "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
            ),
        ] {
            assert_eq!(parse(&jwk).unwrap().key().thumbprint(), expected);
        }
    }

    #[test]
    fn jwk_is_written_as_it_was_read() {
        for jwk in [
            format!(r#"{{"crv":"P-256","kty":"EC","x":"{EC_X}","y":"{EC_Y}"}}"#),
            format!(r#"{{"e":"AQAB","kty":"RSA","n":"{RSA_N}"}}"#),
            format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{ED_X}"}}"#),
        ] {
            assert_eq!(parse(&jwk).unwrap().key().to_jwk().as_str(), jwk);
        }
    }

    #[test]
    fn jwk_that_is_not_a_usable_public_key_is_refused() {
        let ec = |members: &str| format!(r#"{{"kty":"EC","crv":"P-256",{members}}}"#);
        let small = encode_base64url([0xff; 128]);
        let huge = encode_base64url([0xff; 1025]);
        let zero = encode_base64url([&[0], &[0xff; 256][..]].concat());
        for (jwk, expected) in [
            ("[]".to_owned(), JwkError::Json),
            (format!(r#"{{"kty":"EC","kty":"EC","crv":"P-256","x":"{EC_X}","y":"{EC_Y}"}}"#), JwkError::Json),
            ("{}".to_owned(), JwkError::Member),
            (r#"{"kty":7}"#.to_owned(), JwkError::Member),
            (r#"{"kty":"oct","k":"AAAA"}"#.to_owned(), JwkError::Private),
            (r#"{"kty":"oct"}"#.to_owned(), JwkError::Unsupported),
            (ec(&format!(r#""x":"{EC_X}","y":"{EC_Y}","d":"{EC_X}""#)), JwkError::Private),
            (ec(&format!(r#""x":"{EC_X}","y":"{EC_Y}","d":null"#)), JwkError::Private),
            (format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":"AQAB","p":"AQ"}}"#), JwkError::Private),
            (ec(&format!(r#""x":"{EC_X}""#)), JwkError::Member),
            (ec(&format!(r#""x":"{EC_X}=","y":"{EC_Y}""#)), JwkError::Member),
            (ec(&format!(r#""x":"AAAA","y":"{EC_Y}""#)), JwkError::Member),
            (format!(r#"{{"kty":"EC","x":"{EC_X}","y":"{EC_Y}"}}"#), JwkError::Member),
            (format!(r#"{{"kty":"EC","crv":"P-384","x":"{EC_X}","y":"{EC_Y}"}}"#), JwkError::Member),
            (format!(r#"{{"kty":"EC","crv":"secp256k1","x":"{EC_X}","y":"{EC_Y}"}}"#), JwkError::Unsupported),
            (format!(r#"{{"kty":"OKP","crv":"X25519","x":"{ED_X}"}}"#), JwkError::Unsupported),
            (r#"{"kty":"OKP","crv":"Ed25519","x":"AAAA"}"#.to_owned(), JwkError::Member),
            (format!(r#"{{"kty":"RSA","n":"{small}","e":"AQAB"}}"#), JwkError::RsaSize),
            (format!(r#"{{"kty":"RSA","n":"{huge}","e":"AQAB"}}"#), JwkError::RsaSize),
            (format!(r#"{{"kty":"RSA","n":"{zero}","e":"AQAB"}}"#), JwkError::Member),
            (format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":""}}"#), JwkError::Member),
            (format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":"AAEAAQ"}}"#), JwkError::Member),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{ED_X}","key_ops":"verify"}}"#), JwkError::Member),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{ED_X}","kid":1}}"#), JwkError::Member),
        ] {
            assert_eq!(parse(&jwk), Err(expected), "{jwk:.100}");
        }
    }

    #[test]
    fn jwk_metadata_limits_the_algorithms() {
        use SignatureAlgorithm::{EdDsa, Es256, Ps256, Rs256};
        let rsa = |members: &str| format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":"AQAB"{members}}}"#);
        for (jwk, algorithm, expected) in [
            (rsa(""), Rs256, true),
            (rsa(""), Ps256, true),
            (rsa(""), Es256, false),
            (rsa(""), EdDsa, false),
            (rsa(r#","alg":"PS256""#), Rs256, false),
            (rsa(r#","alg":"PS256""#), Ps256, true),
            (rsa(r#","alg":"RSA-OAEP""#), Rs256, false),
            (rsa(r#","use":"sig""#), Rs256, true),
            (rsa(r#","use":"enc""#), Rs256, false),
            (rsa(r#","key_ops":["verify"]"#), Rs256, true),
            (rsa(r#","key_ops":["encrypt"]"#), Rs256, false),
            (rsa(r#","key_ops":[]"#), Rs256, false),
        ] {
            assert_eq!(parse(&jwk).unwrap().allows(algorithm), expected, "{algorithm} {jwk:.20}");
        }
    }

    proptest! {
        #[test]
        fn jwk_parser_never_panics(
            kty in "(EC|RSA|OKP|oct)",
            crv in "(P-256|P-384|Ed25519|X)",
            x in "[A-Za-z0-9_=-]{0,120}",
            y in ".{0,60}",
        ) {
            let value = serde_json::json!({"kty": kty, "crv": crv, "x": x, "y": y, "n": x, "e": y});
            if let Ok(jwk) = PublicJwk::parse(&RawJson::from(value)) {
                jwk.key().thumbprint();
                for algorithm in SignatureAlgorithm::ALL {
                    prop_assert!(jwk.key().verify(algorithm, b"", y.as_bytes()).is_err());
                }
            }
        }
    }
}
