use std::fmt;

/// A signature algorithm of the allow-list.
///
/// There is no variant for `none` and none for HMAC: an `alg` that is not listed cannot be represented, and so is
/// refused where a header is read ([RFC 8725 §3.1](https://www.rfc-editor.org/rfc/rfc8725#section-3.1)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// EdDSA with Ed25519 ([RFC 8037](https://www.rfc-editor.org/rfc/rfc8037)).
    EdDsa,
}

/// The type of a key, with its curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// An elliptic-curve key on P-256.
    P256,
    /// An elliptic-curve key on P-384.
    P384,
    /// An RSA key.
    Rsa,
    /// An octet key pair on Ed25519.
    Ed25519,
}

impl SignatureAlgorithm {
    /// Every algorithm that can be verified.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
    ];

    /// Returns the algorithm with a name, which is case-sensitive.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }

    /// Returns the name in the registry of
    /// [RFC 7518 §3.1](https://www.rfc-editor.org/rfc/rfc7518#section-3.1).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
        }
    }

    /// Returns the only type of key that the algorithm works with.
    pub fn key_type(self) -> KeyType {
        match self {
            Self::Es256 => KeyType::P256,
            Self::Es384 => KeyType::P384,
            Self::EdDsa => KeyType::Ed25519,
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => KeyType::Rsa,
        }
    }

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

impl fmt::Display for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of allowed algorithms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AlgorithmSet(u16);

impl AlgorithmSet {
    /// Allows every algorithm of [`SignatureAlgorithm`].
    pub fn all() -> Self {
        SignatureAlgorithm::ALL.into_iter().collect()
    }

    /// Reports whether an algorithm is allowed.
    pub fn contains(self, algorithm: SignatureAlgorithm) -> bool {
        self.0 & algorithm.bit() != 0
    }

    /// Iterates over the allowed algorithms, in the order of [`SignatureAlgorithm::ALL`].
    pub fn iter(self) -> impl Iterator<Item = SignatureAlgorithm> {
        SignatureAlgorithm::ALL.into_iter().filter(move |algorithm| self.contains(*algorithm))
    }
}

impl FromIterator<SignatureAlgorithm> for AlgorithmSet {
    fn from_iter<I: IntoIterator<Item = SignatureAlgorithm>>(algorithms: I) -> Self {
        Self(algorithms.into_iter().fold(0, |bits, algorithm| bits | algorithm.bit()))
    }
}

impl fmt::Debug for AlgorithmSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithm_names_parse_exactly() {
        for algorithm in SignatureAlgorithm::ALL {
            assert_eq!(SignatureAlgorithm::parse(algorithm.as_str()), Some(algorithm));
        }
        for name in
            ["none", "None", "NONE", "HS256", "HS384", "HS512", "es256", "ES256 ", "", "ES256K", "ES512"]
        {
            assert_eq!(SignatureAlgorithm::parse(name), None, "{name}");
        }
    }

    #[test]
    fn algorithm_set_contains_only_its_members() {
        let set: AlgorithmSet = [SignatureAlgorithm::Es256, SignatureAlgorithm::EdDsa].into_iter().collect();
        let members: Vec<_> = set.iter().collect();
        assert_eq!(members, [SignatureAlgorithm::Es256, SignatureAlgorithm::EdDsa]);
        assert!(!set.contains(SignatureAlgorithm::Rs256));
        assert_eq!(AlgorithmSet::all().iter().count(), SignatureAlgorithm::ALL.len());
    }
}
