use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, StatusCode};
use trunkline_http1::Url;
use trunkline_transport::dial::AddressPolicy;

use super::error::AuthorizationError;
use super::{Authorizer, challenged};
use crate::fetch::{FetchLimits, Fetcher};
use crate::flow::FlowTrigger;
use crate::token_store::StoredTokens;

/// Any request is refused without credentials; this one has no effect if it is not.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":"login","method":"ping"}"#;

impl Authorizer {
    /// Obtains a new token now, in the place of any that is stored.
    ///
    /// The server gets a request without credentials before, since its challenge may name its metadata and the scopes that
    /// it needs.
    ///
    /// # Errors
    /// A step of the flow failed.
    pub async fn log_in(&self) -> Result<(), AuthorizationError> {
        self.load().await?;
        let trigger = self.probe().await;
        let mut history = self.flight.lock().await;
        let scopes = history.requested.clone();
        self.authorize(&mut history, trigger, scopes).await
    }

    /// Returns the tokens of the store for this server.
    ///
    /// # Errors
    /// The store failed.
    pub async fn stored(&self) -> Result<Option<StoredTokens>, AuthorizationError> {
        self.load().await?;
        let Some(key) = self.current_key() else { return Ok(None) };
        Ok(self.options.store.load(&key).await?)
    }

    /// Returns what the server demands of a request without credentials.
    pub async fn probe(&self) -> FlowTrigger {
        let request = Request::post(&self.server_url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(Bytes::from_static(PROBE.as_bytes()));
        // The user has chosen this address.
        let fetcher = Fetcher::new(self.dialer.with_addresses(AddressPolicy::ANY), FetchLimits::default());
        match request {
            Ok(request) => match fetcher.fetch(request).await {
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                    challenged(response.headers())
                }
                _ => FlowTrigger::Login,
            },
            Err(_) => FlowTrigger::Login,
        }
    }

    /// Returns the URL by which tokens of this server are stored.
    pub fn server_url(&self) -> &str {
        &self.server_url
    }
}

/// Returns the URL by which a server is known to authorization, which has no WebSocket schemes.
pub(super) fn http_url(url: &Url) -> Url {
    let full = url.to_full_string();
    let over_http = full.strip_prefix("ws").and_then(|rest| format!("http{rest}").parse().ok());
    over_http.unwrap_or_else(|| url.clone())
}
