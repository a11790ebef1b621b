//! DPoP proofs (RFC 9449), of which every request needs one of its own.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

/// The key of a client, to which its access token is bound.
pub(crate) struct ProofKey {
    key: EcdsaKeyPair,
    random: SystemRandom,
    /// The encoded header of all its proofs.
    header: String,
    thumbprint: String,
    /// The URL of the requests.
    url: &'static str,
    /// The hash of the access token.
    token_hash: String,
    proofs: AtomicU64,
}

impl ProofKey {
    /// Generates a key for requests to a URL.
    pub(crate) fn generate(url: &'static str) -> Result<Self> {
        let key = generate_key()?;
        let (x, y) = coordinates(&key)?;
        // The members in the order of RFC 7638.
        let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let thumbprint = URL_SAFE_NO_PAD.encode(digest(&SHA256, jwk.as_bytes()));
        let header = format!(r#"{{"alg":"ES256","typ":"dpop+jwt","jwk":{jwk}}}"#);
        Ok(Self {
            key,
            random: SystemRandom::new(),
            header: URL_SAFE_NO_PAD.encode(header),
            thumbprint,
            url,
            token_hash: String::new(),
            proofs: AtomicU64::new(0),
        })
    }

    /// Gives the value of the claim `jkt`.
    pub(crate) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Makes proofs for this access token.
    pub(crate) fn for_token(self, token: &str) -> Self {
        Self { token_hash: URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())), ..self }
    }

    /// Signs the proof of one POST. All proofs are of the same length.
    pub(crate) fn proof(&self) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let number = self.proofs.fetch_add(1, Ordering::Relaxed);
        let (url, hash) = (self.url, &self.token_hash);
        let claims =
            format!(r#"{{"jti":"{number:020}","htm":"POST","htu":"{url}","iat":{now:010},"ath":"{hash}"}}"#);
        sign(&self.key, &self.random, &self.header, &claims)
    }
}

impl fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProofKey").field("thumbprint", &self.thumbprint).finish_non_exhaustive()
    }
}

/// Generates a key for ES256.
pub(crate) fn generate_key() -> Result<EcdsaKeyPair> {
    let random = SystemRandom::new();
    let failed = |_| anyhow!("no key");
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).map_err(failed)?;
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
        .map_err(|error| anyhow!("no key: {error}"))
}

/// Gives the members `x` and `y` of a public key.
pub(crate) fn coordinates(key: &EcdsaKeyPair) -> Result<(String, String)> {
    // An uncompressed point: 4, x and y.
    let point = key.public_key().as_ref();
    let coordinate = |range| point.get(range).map(|bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes));
    Ok((coordinate(1..33).context("no x")?, coordinate(33..65).context("no y")?))
}

/// Signs claims; the header is encoded already.
pub(crate) fn sign(key: &EcdsaKeyPair, random: &SystemRandom, header: &str, claims: &str) -> Result<String> {
    let input = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = key.sign(random, input.as_bytes()).map_err(|_| anyhow!("no signature"))?;
    Ok(format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Encodes the header of a token of an issuer with one key.
pub(crate) fn token_header() -> String {
    URL_SAFE_NO_PAD.encode(json!({ "alg": "ES256", "typ": "at+jwt", "kid": "a" }).to_string())
}
