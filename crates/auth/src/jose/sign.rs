use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use trunkline_protocol::{JsonWriter, RawJson};
use zeroize::Zeroizing;

use super::{SignatureAlgorithm, VerificationKey, encode_base64url};

/// A private key that signs with one algorithm: ES256, EdDSA, RS256 or PS256.
///
/// ECDSA and RSASSA-PSS draw a random number for each signature. `ring` draws it from the operating system and accepts
/// no other source, so that signing is the one operation of this module that is not a function of its arguments.
pub struct SigningKey {
    algorithm: SignatureAlgorithm,
    pair: SigningPair,
    public: VerificationKey,
}

enum SigningPair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    // Larger than the others by far.
    Rsa(Box<RsaKeyPair>),
}

/// The reason why a private key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningKeyError {
    /// The text has no unencrypted private key in PEM.
    #[error(
        "the file has no unencrypted private key in PEM; decrypt it with `openssl pkey -in OLD -out NEW`"
    )]
    Pem,
    /// The key is none of the supported types, or damaged.
    #[error("the private key is not an EC key on P-256, an Ed25519 key, or an RSA key of 2048 to 4096 bits")]
    Unsupported,
    /// The EC key lacks its public key, which cannot be computed here.
    #[error("the EC private key lacks its public key; add it with `openssl ec -in OLD -out NEW`")]
    NoPublicKey,
    /// The wanted algorithm does not fit the key, or is not one to sign with.
    #[error("the private key cannot sign with {0}")]
    Algorithm(SignatureAlgorithm),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness,
}

/// The reason why nothing was signed: the operating system gives no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("signing failed: the operating system gives no random bytes")]
pub struct SigningError;

impl SigningKey {
    /// Reads a private key in PEM: PKCS#8 (`PRIVATE KEY`), PKCS#1 (`RSA PRIVATE KEY`) or SEC 1 (`EC PRIVATE KEY`).
    ///
    /// `algorithm` chooses between RS256 and PS256 for an RSA key, which signs with RS256 if none is given; for other
    /// keys it must be the algorithm of their type.
    ///
    /// # Errors
    /// The text has no private key, or one that cannot be used.
    pub fn from_pem(text: &[u8], algorithm: Option<SignatureAlgorithm>) -> Result<Self, SigningKeyError> {
        match PrivateKeyDer::from_pem_slice(text).map_err(|_| SigningKeyError::Pem)? {
            PrivateKeyDer::Pkcs8(der) => Self::from_pkcs8(der.secret_pkcs8_der(), algorithm),
            PrivateKeyDer::Sec1(der) => Self::from_pkcs8(&wrap_sec1(der.secret_sec1_der())?, algorithm),
            PrivateKeyDer::Pkcs1(der) => {
                let pair = RsaKeyPair::from_der(der.secret_pkcs1_der());
                Self::rsa(pair.map_err(|_| SigningKeyError::Unsupported)?).with_algorithm(algorithm)
            }
            _ => Err(SigningKeyError::Unsupported),
        }
    }

    /// Reads a private key in PKCS#8 DER; as [`SigningKey::from_pem`].
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn from_pkcs8(der: &[u8], algorithm: Option<SignatureAlgorithm>) -> Result<Self, SigningKeyError> {
        let key = match EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new())
        {
            Ok(pair) => Self::ecdsa(pair),
            Err(_) if is_p256_without_public_key(der) => return Err(SigningKeyError::NoPublicKey),
            Err(_) => match (Ed25519KeyPair::from_pkcs8_maybe_unchecked(der), RsaKeyPair::from_pkcs8(der)) {
                (Ok(pair), _) => Self::ed25519(pair),
                (_, Ok(pair)) => Self::rsa(pair),
                _ => return Err(SigningKeyError::Unsupported),
            },
        };
        key.with_algorithm(algorithm)
    }

    /// Generates an ES256 key from random numbers of the operating system, and returns its PKCS#8 DER for
    /// [`SigningKey::from_pkcs8`].
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn generate_es256() -> Result<Zeroizing<Vec<u8>>, SigningKeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let document = document.map_err(|_| SigningKeyError::NoRandomness)?;
        Ok(Zeroizing::new(document.as_ref().to_vec()))
    }

    /// Returns the algorithm that the key signs with.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Returns the public key.
    pub fn public(&self) -> &VerificationKey {
        &self.public
    }

    /// Signs a payload as a compact JWS. The header has `alg` and the given parameters.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn sign_compact(
        &self,
        parameters: &[(&str, RawJson)],
        payload: &RawJson,
    ) -> Result<String, SigningError> {
        let mut header = JsonWriter::with_capacity(64);
        header.open_object();
        header.plain_key("alg");
        header.string(self.algorithm.as_str());
        for (name, value) in parameters {
            header.member(name, value);
        }
        header.close_object();
        let mut text = encode_base64url(header.into_string());
        text.push('.');
        text.push_str(&encode_base64url(payload.as_str()));
        let signature = self.sign(text.as_bytes())?;
        text.push('.');
        text.push_str(&encode_base64url(signature));
        Ok(text)
    }

    /// Signs bytes.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningError> {
        let random = SystemRandom::new();
        match &self.pair {
            SigningPair::Ecdsa(pair) => pair
                .sign(&random, message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| SigningError),
            SigningPair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            SigningPair::Rsa(pair) => {
                let padding: &'static dyn ring::signature::RsaEncoding =
                    if self.algorithm == SignatureAlgorithm::Ps256 {
                        &RSA_PSS_SHA256
                    } else {
                        &RSA_PKCS1_SHA256
                    };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message, &mut signature).map_err(|_| SigningError)?;
                Ok(signature)
            }
        }
    }

    fn with_algorithm(mut self, algorithm: Option<SignatureAlgorithm>) -> Result<Self, SigningKeyError> {
        match algorithm {
            None => {}
            Some(SignatureAlgorithm::Ps256) if matches!(self.pair, SigningPair::Rsa(_)) => {
                self.algorithm = SignatureAlgorithm::Ps256;
            }
            Some(wanted) if wanted == self.algorithm => {}
            Some(wanted) => return Err(SigningKeyError::Algorithm(wanted)),
        }
        Ok(self)
    }

    fn ecdsa(pair: EcdsaKeyPair) -> Self {
        let public = VerificationKey::P256(pair.public_key().as_ref().to_vec());
        Self { algorithm: SignatureAlgorithm::Es256, pair: SigningPair::Ecdsa(pair), public }
    }

    fn ed25519(pair: Ed25519KeyPair) -> Self {
        let public = VerificationKey::Ed25519(pair.public_key().as_ref().to_vec());
        Self { algorithm: SignatureAlgorithm::EdDsa, pair: SigningPair::Ed25519(pair), public }
    }

    fn rsa(pair: RsaKeyPair) -> Self {
        let RsaPublicKeyComponents { n: modulus, e: exponent } = pair.public().into();
        let public = VerificationKey::Rsa { modulus, exponent };
        Self { algorithm: SignatureAlgorithm::Rs256, pair: SigningPair::Rsa(Box::new(pair)), public }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// The DER of an `AlgorithmIdentifier` for an EC key on P-256, as PKCS#8 has it before the key.
const P256_ALGORITHM: [u8; 21] = [
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07,
];

/// The length of a 256-bit `ECPrivateKey` with all its optional parts
/// ([RFC 5915 §3](https://www.rfc-editor.org/rfc/rfc5915#section-3)); lengths up to here take one byte in DER.
const SEC1_MAX_BYTES: usize = 121;

/// Wraps the `ECPrivateKey` of SEC 1 in PKCS#8, as `ring` reads it. A key on another curve is refused when it is read.
fn wrap_sec1(key: &[u8]) -> Result<Zeroizing<Vec<u8>>, SigningKeyError> {
    let length = u8::try_from(key.len()).ok().filter(|length| usize::from(*length) <= SEC1_MAX_BYTES);
    let length = length.ok_or(SigningKeyError::Unsupported)?;
    let mut content = Zeroizing::new(vec![0x02, 0x01, 0x00]);
    content.extend(P256_ALGORITHM);
    content.extend([0x04, length]);
    content.extend(key);
    let whole = u8::try_from(content.len()).map_err(|_| SigningKeyError::Unsupported)?;
    let mut wrapped = Zeroizing::new(vec![0x30]);
    if whole >= 0x80 {
        wrapped.push(0x81);
    }
    wrapped.push(whole);
    wrapped.extend(&*content);
    Ok(wrapped)
}

/// Reports whether a PKCS#8 document names P-256 and is too short to hold the public point of 65 bytes.
fn is_p256_without_public_key(der: &[u8]) -> bool {
    const SHORTEST_WITH_PUBLIC_KEY: usize = 120;
    der.len() < SHORTEST_WITH_PUBLIC_KEY
        && der.windows(P256_ALGORITHM.len()).any(|part| part == P256_ALGORITHM)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::super::{AlgorithmSet, CompactJws, fixtures};
    use super::*;

    fn pem(label: &str, der: &[u8]) -> Vec<u8> {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der)).into_bytes()
    }

    /// The `ECPrivateKey` inside of a PKCS#8 document of `ring`.
    fn sec1(pkcs8: &[u8]) -> Vec<u8> {
        let start = 3 + 3 + P256_ALGORITHM.len() + 2;
        pkcs8[start..].to_vec()
    }

    #[test]
    fn every_signing_key_makes_signatures_that_verify() {
        let ec = SigningKey::generate_es256().unwrap();
        let rsa = fixtures::rsa_pkcs8();
        let inner_rsa = rsa[26..].to_vec();
        let ed = fixtures::ed25519_pkcs8();
        let payload = RawJson::parse(r#"{"sub":"a"}"#.to_owned()).unwrap();
        for (label, der, wanted, algorithm) in [
            ("PRIVATE KEY", ec.to_vec(), None, SignatureAlgorithm::Es256),
            ("EC PRIVATE KEY", sec1(&ec), Some(SignatureAlgorithm::Es256), SignatureAlgorithm::Es256),
            ("PRIVATE KEY", ed, None, SignatureAlgorithm::EdDsa),
            ("PRIVATE KEY", rsa.clone(), None, SignatureAlgorithm::Rs256),
            ("PRIVATE KEY", rsa, Some(SignatureAlgorithm::Ps256), SignatureAlgorithm::Ps256),
            ("RSA PRIVATE KEY", inner_rsa, Some(SignatureAlgorithm::Ps256), SignatureAlgorithm::Ps256),
        ] {
            let key = SigningKey::from_pem(&pem(label, &der), wanted).unwrap();
            assert_eq!(key.algorithm(), algorithm, "{label}");
            let text = key.sign_compact(&[("kid", RawJson::from_text("k"))], &payload).unwrap();
            let jws = CompactJws::parse(&text).unwrap();
            assert_eq!(jws.verify(key.public(), AlgorithmSet::all()), Ok(()), "{algorithm}");
            assert_eq!((jws.payload(), jws.key_id().as_deref()), (&br#"{"sub":"a"}"#[..], Some("k")));
        }
    }

    #[test]
    fn unusable_private_key_is_refused_with_its_reason() {
        let ec = SigningKey::generate_es256().unwrap();
        let scalar = &ec[36..68];
        let bare = [&[0x30, 0x25, 0x02, 0x01, 0x01, 0x04, 0x20], scalar].concat();
        let p384 = EcdsaKeyPair::generate_pkcs8(
            &ring::signature::ECDSA_P384_SHA384_FIXED_SIGNING,
            &SystemRandom::new(),
        );
        for (text, wanted, expected) in [
            (b"no key".to_vec(), None, SigningKeyError::Pem),
            (pem("ENCRYPTED PRIVATE KEY", &ec), None, SigningKeyError::Pem),
            (pem("PRIVATE KEY", b"garbage"), None, SigningKeyError::Unsupported),
            (pem("PRIVATE KEY", &ec[..100]), None, SigningKeyError::NoPublicKey),
            (pem("PRIVATE KEY", &wrap_sec1(&bare).unwrap()), None, SigningKeyError::NoPublicKey),
            (pem("EC PRIVATE KEY", &bare), None, SigningKeyError::NoPublicKey),
            (pem("EC PRIVATE KEY", &[0; 200]), None, SigningKeyError::Unsupported),
            (pem("RSA PRIVATE KEY", &[0; 200]), None, SigningKeyError::Unsupported),
            (pem("PRIVATE KEY", p384.unwrap().as_ref()), None, SigningKeyError::Unsupported),
            (
                pem("PRIVATE KEY", &ec),
                Some(SignatureAlgorithm::Rs256),
                SigningKeyError::Algorithm(SignatureAlgorithm::Rs256),
            ),
            (
                pem("PRIVATE KEY", &fixtures::rsa_pkcs8()),
                Some(SignatureAlgorithm::Rs512),
                SigningKeyError::Algorithm(SignatureAlgorithm::Rs512),
            ),
        ] {
            let shown = String::from_utf8_lossy(&text).into_owned();
            assert_eq!(SigningKey::from_pem(&text, wanted).err(), Some(expected), "{shown:.60}");
        }
    }

    #[test]
    fn signing_key_is_not_printed() {
        let key = SigningKey::from_pkcs8(&fixtures::ed25519_pkcs8(), None).unwrap();
        assert_eq!(format!("{key:?}"), "SigningKey { algorithm: EdDsa, .. }");
    }
}
