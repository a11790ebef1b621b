use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

use super::{SignatureAlgorithm, VerificationKey};

/// The reason why a signature does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The algorithm is not allowed here.
    #[error("the signature algorithm is not allowed")]
    Algorithm,
    /// The key is of another type than the algorithm needs.
    #[error("the key does not fit the signature algorithm")]
    KeyType,
    /// The signature was not made by this key over these bytes.
    #[error("the signature is wrong")]
    Signature,
}

impl VerificationKey {
    /// Verifies a signature over `message`.
    ///
    /// ECDSA signatures are the fixed-length concatenation of
    /// [RFC 7518 §3.4](https://www.rfc-editor.org/rfc/rfc7518#section-3.4), not DER.
    ///
    /// # Errors
    /// The key does not fit the algorithm, or the signature is wrong.
    pub fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), VerifyError> {
        if self.key_type() != algorithm.key_type() {
            return Err(VerifyError::KeyType);
        }
        let checked = match (self, RingAlgorithm::of(algorithm)) {
            (
                Self::P256(point) | Self::P384(point) | Self::Ed25519(point),
                RingAlgorithm::Point(algorithm),
            ) => UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok(),
            (Self::Rsa { modulus, exponent }, RingAlgorithm::Rsa(parameters)) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signature).is_ok()
            }
            _ => return Err(VerifyError::KeyType),
        };
        if checked { Ok(()) } else { Err(VerifyError::Signature) }
    }
}

/// An algorithm of `ring`, by the form of key that it takes.
enum RingAlgorithm {
    Point(&'static dyn VerificationAlgorithm),
    Rsa(&'static RsaParameters),
}

impl RingAlgorithm {
    fn of(algorithm: SignatureAlgorithm) -> Self {
        match algorithm {
            SignatureAlgorithm::Es256 => Self::Point(&signature::ECDSA_P256_SHA256_FIXED),
            SignatureAlgorithm::Es384 => Self::Point(&signature::ECDSA_P384_SHA384_FIXED),
            SignatureAlgorithm::EdDsa => Self::Point(&signature::ED25519),
            SignatureAlgorithm::Rs256 => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            SignatureAlgorithm::Rs384 => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            SignatureAlgorithm::Rs512 => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            SignatureAlgorithm::Ps256 => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
            SignatureAlgorithm::Ps384 => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
            SignatureAlgorithm::Ps512 => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        }
    }
}
