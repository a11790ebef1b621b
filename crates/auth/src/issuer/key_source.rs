use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{Request, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use trunkline_session::Timestamp;
use trunkline_transport::dial::Dialer;

use super::discovery_cache::DiscoveryCache;
use super::error::IssuerDocumentError;
use crate::access_token::{FetchReason, KeyCache, KeyCachePolicy, KeyWithdrawal};
use crate::fetch::{FetchLimits, Fetcher};
use crate::jose::JwkSet;

/// The keys of one issuer, fetched when they are needed, by one task for all requests.
pub(super) struct KeySource {
    cache: Mutex<KeyCache>,
    /// Locked while a fetch runs; requests that need its result wait for it.
    fetching: Arc<tokio::sync::Mutex<()>>,
    jwks_uri: Option<String>,
    dialer: Dialer,
    discovery: Arc<DiscoveryCache>,
    /// Called when keys were withdrawn.
    on_withdrawal: Box<dyn Fn() + Send + Sync>,
}

impl KeySource {
    pub(super) fn new(
        jwks_uri: Option<String>,
        dialer: Dialer,
        discovery: Arc<DiscoveryCache>,
        policy: KeyCachePolicy,
        on_withdrawal: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let cache = Mutex::new(KeyCache::new(policy));
        Self { cache, fetching: Arc::default(), jwks_uri, dialer, discovery, on_withdrawal }
    }

    /// Returns the keys. Those that have reached their age are used while newer ones are fetched; without any, the fetch
    /// is waited for.
    pub(super) async fn keys(self: &Arc<Self>, now: Timestamp) -> Option<Arc<JwkSet>> {
        let known = {
            let mut cache = self.cache.lock();
            let known = cache.keys(now);
            self.fetch_if_due(&mut cache, FetchReason::Age, now);
            known
        };
        if known.is_some() {
            return known;
        }
        self.fetched().await;
        self.cache.lock().keys(now)
    }

    /// Returns keys that are newer than those which do not verify a token, if the issuer has any.
    pub(super) async fn newer_than(
        self: &Arc<Self>,
        known: &Arc<JwkSet>,
        now: Timestamp,
    ) -> Option<Arc<JwkSet>> {
        self.fetch_if_due(&mut self.cache.lock(), FetchReason::UnknownKey, now);
        self.fetched().await;
        self.cache.lock().keys(now).filter(|keys| !Arc::ptr_eq(keys, known))
    }

    /// Begins a fetch in a task of its own, so that it does not end with the request that needs it. The cache is locked
    /// until the fetch can be waited for.
    fn fetch_if_due(
        self: &Arc<Self>,
        cache: &mut MutexGuard<'_, KeyCache>,
        reason: FetchReason,
        now: Timestamp,
    ) {
        let Ok(turn) = self.fetching.clone().try_lock_owned() else { return };
        if cache.begin_fetch(reason, now) {
            let source = self.clone();
            tokio::spawn(async move {
                if let Err(error) = source.fetch().await {
                    tracing::warn!(%error, "the keys of an issuer cannot be fetched");
                }
                drop(turn);
            });
        }
    }

    /// Waits until no fetch runs.
    async fn fetched(&self) {
        drop(self.fetching.lock().await);
    }

    async fn fetch(&self) -> Result<(), IssuerDocumentError> {
        let (url, fetcher) = match &self.jwks_uri {
            Some(uri) => (uri.clone(), Fetcher::new(self.dialer.clone(), FetchLimits::default())),
            None => {
                let metadata = self.discovery.metadata().await?;
                let uri = metadata.jwks_uri.clone().ok_or(IssuerDocumentError::Missing("jwks_uri"))?;
                (uri, self.discovery.fetcher().await)
            }
        };
        let response = fetcher.fetch(Request::get(&url).body(Bytes::new())?).await?;
        if response.status() != StatusCode::OK {
            return Err(IssuerDocumentError::Status { url, status: response.status().as_u16() });
        }
        let keys =
            JwkSet::parse(response.body()).map_err(|source| IssuerDocumentError::Keys { url, source })?;
        let cache_control = response.headers().get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
        let now = Timestamp::from_system(SystemTime::now());
        let withdrawal = self.cache.lock().fetched(keys, cache_control, now);
        if withdrawal == KeyWithdrawal::Withdrawn {
            (self.on_withdrawal)();
        }
        Ok(())
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySource").field("jwks_uri", &self.jwks_uri).finish_non_exhaustive()
    }
}
