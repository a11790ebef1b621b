use std::fmt;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderName;
use http::{HeaderValue, Method, Uri};
use trunkline_session::Timestamp;
use trunkline_transport::Secret;
use zeroize::Zeroizing;

use super::driver::sensitive;
use super::error::AuthorizationError;
use super::random_bytes;
use crate::dpop::{DpopProof, TargetUri};
use crate::jose::SigningKey;

/// The header of a DPoP proof (RFC 9449 §4.1).
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The key that the tokens of one authorizer are bound to.
pub(super) struct DpopKey {
    key: SigningKey,
    pkcs8: Zeroizing<Vec<u8>>,
}

impl DpopKey {
    /// Generates a key.
    pub(super) fn generate() -> Result<Self, AuthorizationError> {
        let pkcs8 = SigningKey::generate_es256().map_err(|_| AuthorizationError::Signing)?;
        Self::from_pkcs8(pkcs8)
    }

    fn from_pkcs8(pkcs8: Zeroizing<Vec<u8>>) -> Result<Self, AuthorizationError> {
        let key = SigningKey::from_pkcs8(&pkcs8, None).map_err(|_| AuthorizationError::Signing)?;
        Ok(Self { key, pkcs8 })
    }

    /// Restores the key that was stored beside the tokens that are bound to it.
    pub(super) fn from_text(text: &Secret) -> Result<Self, AuthorizationError> {
        let pkcs8 = STANDARD.decode(text.expose()).map_err(|_| AuthorizationError::Signing)?;
        Self::from_pkcs8(Zeroizing::new(pkcs8))
    }

    /// Returns the private key as text, to store it beside the tokens.
    pub(super) fn to_text(&self) -> Secret {
        Secret::new(STANDARD.encode(&*self.pkcs8))
    }

    /// Returns the thumbprint that tokens are bound to (RFC 7638).
    pub(super) fn thumbprint(&self) -> String {
        self.key.public().thumbprint()
    }

    /// Makes the proof for one request.
    pub(super) fn proof(
        &self,
        method: &Method,
        uri: &Uri,
        access_token: Option<&str>,
        nonce: Option<&str>,
    ) -> Result<HeaderValue, AuthorizationError> {
        let target = TargetUri::new(uri).ok_or(AuthorizationError::Signing)?;
        let proof = DpopProof { method: method.as_str(), target: &target, access_token, nonce };
        let now = Timestamp::from_system(SystemTime::now());
        let signed = proof.sign(&self.key, &random_bytes()?, now).map_err(|_| AuthorizationError::Signing)?;
        sensitive(signed.expose())
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DpopKey").field(&self.thumbprint()).finish()
    }
}
