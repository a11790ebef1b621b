use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use tokio::time::Instant;
use trunkline_http1::Url;
use trunkline_transport::dial::Dialer;

use super::IssuerMetadata;
use super::error::IssuerDocumentError;
use crate::discovery::server_metadata_urls;
use crate::fetch::{FetchLimits, Fetcher};

/// For how long the metadata of an issuer are used. They change rarely, and keys have their own age.
pub const METADATA_AGE: Duration = Duration::from_secs(600);

/// The time after a failed fetch until the next. Requests without a credential cause fetches too.
pub const METADATA_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The metadata of one issuer, fetched when they are needed.
#[derive(Debug)]
pub(super) struct DiscoveryCache {
    issuer: String,
    url: Url,
    dialer: Dialer,
    /// Held while the metadata are fetched, so that one request does it for all.
    found: tokio::sync::Mutex<FoundMetadata>,
}

#[derive(Debug, Default)]
struct FoundMetadata {
    metadata: Option<Arc<IssuerMetadata>>,
    /// When there is a next fetch at the earliest.
    next_fetch: Option<Instant>,
}

impl DiscoveryCache {
    pub(super) fn new(issuer: &str, url: Url, dialer: Dialer) -> Self {
        Self { issuer: issuer.to_owned(), url, dialer, found: tokio::sync::Mutex::default() }
    }

    /// Returns the metadata; old ones if the issuer does not answer.
    pub(super) async fn metadata(&self) -> Result<Arc<IssuerMetadata>, IssuerDocumentError> {
        let mut found = self.found.lock().await;
        let mut failure = IssuerDocumentError::Waiting;
        if found.next_fetch.is_none_or(|next| next <= Instant::now()) {
            let age = match self.fetch().await {
                Ok(metadata) => {
                    found.metadata = Some(Arc::new(metadata));
                    METADATA_AGE
                }
                Err(error) => {
                    failure = error;
                    METADATA_RETRY_INTERVAL
                }
            };
            found.next_fetch = Some(Instant::now() + age);
        }
        found.metadata.clone().ok_or(failure)
    }

    /// Returns a fetcher for URLs that the issuer chose: they may be public, or in its own kind of network.
    pub(super) async fn fetcher(&self) -> Fetcher {
        let policy = self.dialer.policy_near(&self.url).await;
        Fetcher::new(self.dialer.with_addresses(policy), FetchLimits::default())
    }

    /// Tries the places of the metadata in order. The reason of the first failure is returned.
    async fn fetch(&self) -> Result<IssuerMetadata, IssuerDocumentError> {
        let fetcher = Fetcher::new(self.dialer.clone(), FetchLimits::default());
        let mut failure = None;
        for url in server_metadata_urls(&self.url) {
            match self.fetch_at(&fetcher, url).await {
                Ok(metadata) => return Ok(metadata),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or(IssuerDocumentError::Missing("issuer")))
    }

    async fn fetch_at(&self, fetcher: &Fetcher, url: String) -> Result<IssuerMetadata, IssuerDocumentError> {
        let response = fetcher.fetch(Request::get(&url).body(Bytes::new())?).await?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(IssuerDocumentError::Status { url, status: status.as_u16() });
        }
        IssuerMetadata::parse(response.body(), &self.issuer)
            .map_err(|source| IssuerDocumentError::Metadata { url, source })
    }
}
