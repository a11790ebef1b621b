use std::sync::Weak;
use std::time::Duration;

use tokio::time::Instant;
use trunkline_auth::issuer::IssuerError;
use trunkline_session::Principal;
use trunkline_transport::Secret;

use super::authenticator::ResourceServerInner;

/// How long streams of an introspected token go on while its issuer cannot be reached, in multiples of the interval
/// between two checks: 5 min by default.
const UNCHECKED_INTERVALS: u32 = 5;

/// How many attempts there are in one interval while the issuer cannot be reached.
const ATTEMPTS: u32 = 6;

/// The shortest interval, for a cache that keeps introspected tokens for no time.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// The repeated check of an introspected token while streams are open that were opened with it.
///
/// A token that was revoked at its issuer has no signal and may have no expiry. Streams of one token wake at the same time,
/// when the result of the last introspection is not used any more, and the first of them introspects for all.
#[derive(Clone)]
pub(super) struct TokenRecheck {
    server: Weak<ResourceServerInner>,
    token: Secret,
    interval: Duration,
    /// When the issuer last reported the token as active.
    pub(super) checked_at: Instant,
}

impl TokenRecheck {
    pub(super) fn new(server: Weak<ResourceServerInner>, token: Secret, interval: Duration) -> Self {
        Self { server, token, interval: interval.max(MIN_INTERVAL), checked_at: Instant::now() }
    }

    /// Waits until the issuer reports the token as not active, or could not be reached for too long.
    pub(super) async fn wait_inactive(mut self, principal: Principal) {
        let mut next = self.checked_at + self.interval;
        loop {
            tokio::time::sleep_until(next).await;
            let Some(server) = self.server.upgrade() else { return };
            match server.recheck(self.token.expose(), self.checked_at, Instant::now()).await {
                Ok((token, checked_at)) if token.principal == principal && token.has_required_scopes => {
                    self.checked_at = checked_at;
                    next = checked_at + self.interval;
                }
                Ok(_) | Err(IssuerError::Refused(_)) => return,
                Err(_) if self.checked_at.elapsed() >= self.interval * UNCHECKED_INTERVALS => return,
                Err(_) => next = Instant::now() + self.interval / ATTEMPTS,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_of_an_unreachable_issuer_is_in_the_document_of_limits() {
        let document = include_str!("../../../../../docs/limits.md");
        let row = format!("(`UNCHECKED_INTERVALS`) | {UNCHECKED_INTERVALS} times `introspected_age` |");
        assert!(document.contains(&row), "{row}");
    }
}
