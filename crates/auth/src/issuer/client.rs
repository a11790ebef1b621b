use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use trunkline_session::Timestamp;
use trunkline_transport::dial::Dialer;

use super::discovery_cache::DiscoveryCache;
use super::error::IssuerDocumentError;
use super::key_source::KeySource;
use super::{IssuerError, TokenCheck, TrustedIssuer, TrustedIssuerError};
use crate::access_token::{
    AccessTokenClaims, IntrospectionCredentials, KeyCachePolicy, TokenError, TokenRules, UnverifiedToken,
    introspection_request, read_introspection,
};
use crate::fetch::{FetchLimits, Fetcher, allowed_url};
use crate::json_document::JsonDocument;
use crate::oauth_error::OauthError;

/// When a client should try again after an introspection has failed.
const INTROSPECTION_RETRY: Duration = Duration::from_secs(1);

/// Checks the tokens of one trusted issuer, with what it fetches from there.
///
/// The dialer decides on proxies and certificate authorities. URLs of the configuration may have any address, those in
/// the metadata of the issuer only public ones and those of its own kind of network.
#[derive(Debug)]
pub struct IssuerClient {
    trusted: TrustedIssuer,
    discovery: Arc<DiscoveryCache>,
    keys: Arc<KeySource>,
    dialer: Dialer,
    key_retry: Duration,
}

impl IssuerClient {
    /// Creates a client. Nothing is fetched before the first token. `on_withdrawal` is called when keys were withdrawn:
    /// tokens that they verified must be checked again.
    ///
    /// # Errors
    /// The description of the issuer is not valid.
    pub fn new(
        trusted: TrustedIssuer,
        dialer: Dialer,
        policy: KeyCachePolicy,
        on_withdrawal: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, TrustedIssuerError> {
        trusted.validate()?;
        let url = allowed_url(trusted.issuer())?;
        let discovery = Arc::new(DiscoveryCache::new(trusted.issuer(), url, dialer.clone()));
        let jwks_uri = match &trusted.check {
            TokenCheck::Jwt { jwks_uri } => jwks_uri.clone(),
            TokenCheck::Introspection { .. } => None,
        };
        let on_withdrawal = Box::new(on_withdrawal);
        let keys = KeySource::new(jwks_uri, dialer.clone(), discovery.clone(), policy, on_withdrawal);
        Ok(Self { trusted, discovery, keys: Arc::new(keys), dialer, key_retry: policy.retry_interval })
    }

    /// Returns the description of the issuer.
    pub fn trusted(&self) -> &TrustedIssuer {
        &self.trusted
    }

    fn rules(&self) -> &TokenRules {
        &self.trusted.rules
    }

    /// Checks a token in the way of the issuer.
    ///
    /// # Errors
    /// The token is refused, or cannot be checked now.
    pub async fn check(&self, token: &str, now: Timestamp) -> Result<AccessTokenClaims, IssuerError> {
        let (endpoint, credentials) = match &self.trusted.check {
            TokenCheck::Jwt { .. } => return self.verify(token, now).await,
            TokenCheck::Introspection { endpoint, credentials } => (endpoint.as_deref(), credentials),
        };
        let error = match self.introspect(token, endpoint, credentials).await {
            // Another token of the issuer may be fine, so that the issuer does not count as unavailable.
            Ok(None) => return Err(TokenError::Inactive.into()),
            Ok(Some((url, answer))) => match read_introspection(&answer, self.rules(), now) {
                Err(TokenError::Introspection) => IssuerDocumentError::Introspection { url },
                read => return Ok(read?),
            },
            Err(error) => error,
        };
        tracing::warn!(issuer = self.trusted.issuer(), %error, "a token cannot be introspected");
        Err(IssuerError::Unavailable { retry_after: INTROSPECTION_RETRY })
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<AccessTokenClaims, IssuerError> {
        let unavailable = IssuerError::Unavailable { retry_after: self.key_retry };
        // What can be refused without keys causes no fetch.
        let parsed = UnverifiedToken::parse(token)?;
        parsed.check_header(self.rules())?;
        let keys = self.keys.keys(now).await.ok_or(unavailable)?;
        match parsed.verify(self.rules(), &keys, now) {
            Err(TokenError::UnknownKey) => {}
            checked => return Ok(checked?),
        }
        let newer = self.keys.newer_than(&keys, now).await.ok_or(TokenError::UnknownKey)?;
        Ok(UnverifiedToken::parse(token)?.verify(self.rules(), &newer, now)?)
    }

    /// Introspects a token; `None` if the endpoint introspects no tokens of its kind.
    async fn introspect(
        &self,
        token: &str,
        endpoint: Option<&str>,
        credentials: &IntrospectionCredentials,
    ) -> Result<Option<(String, Bytes)>, IssuerDocumentError> {
        let (url, fetcher) = match endpoint {
            Some(url) => (url.to_owned(), Fetcher::new(self.dialer.clone(), FetchLimits::default())),
            None => {
                let metadata = self.discovery.metadata().await?;
                let missing = IssuerDocumentError::Missing("introspection_endpoint");
                (metadata.introspection_endpoint.clone().ok_or(missing)?, self.discovery.fetcher().await)
            }
        };
        let endpoint = url.parse().map_err(http::Error::from)?;
        let response = fetcher.fetch(introspection_request(&endpoint, token, credentials)?).await?;
        match response.status() {
            StatusCode::OK => Ok(Some((url, response.into_body()))),
            StatusCode::BAD_REQUEST if refuses_token(response.body()) => Ok(None),
            status => Err(IssuerDocumentError::Status { url, status: status.as_u16() }),
        }
    }

    /// Returns the metadata document of the issuer; `None` if it cannot be fetched.
    pub async fn metadata_document(&self) -> Option<Bytes> {
        match self.discovery.metadata().await {
            Ok(metadata) => Some(metadata.document.clone()),
            Err(error) => {
                tracing::warn!(%error, "the metadata of an issuer cannot be fetched");
                None
            }
        }
    }
}

/// Reports whether an error is about the token, and not about the request or its credentials. Some issuers introspect no JWTs,
/// such as ID tokens, although RFC 7662 has them report these as not active.
fn refuses_token(body: &[u8]) -> bool {
    let error = JsonDocument::parse(body).ok().as_ref().and_then(OauthError::read);
    error.is_some_and(|error| matches!(error.code(), "unsupported_token_type" | "invalid_token"))
}
