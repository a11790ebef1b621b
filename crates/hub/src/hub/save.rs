//! Saves listings for the next run.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::HubInner;

/// How long changes are batched before the file is written.
const SAVE_DELAY: Duration = Duration::from_secs(1);

/// Writes the listing file whenever listings have changed.
pub(super) async fn save_listings(inner: Weak<HubInner>, listed: Arc<Notify>) {
    loop {
        listed.notified().await;
        sleep(SAVE_DELAY).await;
        let Some(inner) = inner.upgrade() else { return };
        inner.save_listings().await;
    }
}

impl HubInner {
    /// Writes the listing file, if one is configured.
    pub(super) async fn save_listings(&self) {
        let Some(file) = self.listings_file.clone() else { return };
        let servers = self.servers();
        if servers.is_empty() {
            // The hub has shut down, and its listings are saved already.
            return;
        }
        let listed = servers.iter().map(|server| (server.name().clone(), server.to_stored())).collect();
        let saved = tokio::task::spawn_blocking(move || file.save(listed)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(%error, "cannot store listings for the next start");
        }
    }
}
