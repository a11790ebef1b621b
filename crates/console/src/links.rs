use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::{LINK_LIFETIME, MAX_LINKS};
use crate::sessions::ConsoleRole;
use crate::tokens::{SecretDigest, random_token, token_digest};

/// The one-time links that are not opened yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct OneTimeLinks(Mutex<VecDeque<OneTimeLink>>);

#[derive(Debug)]
struct OneTimeLink {
    digest: SecretDigest,
    role: ConsoleRole,
    expires: Instant,
}

impl OneTimeLinks {
    /// Makes a token for a link.
    pub(crate) fn add(&self, role: ConsoleRole) -> Option<String> {
        let token = random_token()?;
        let mut links = self.0.lock();
        if links.len() >= MAX_LINKS {
            links.pop_front();
        }
        let expires = Instant::now() + LINK_LIFETIME;
        links.push_back(OneTimeLink { digest: token_digest(&token), role, expires });
        Some(token)
    }

    /// Takes the link of a token: it opens once.
    pub(crate) fn take(&self, token: &str) -> Option<ConsoleRole> {
        let digest = token_digest(token);
        let mut links = self.0.lock();
        let now = Instant::now();
        links.retain(|link| link.expires > now);
        let at = links.iter().position(|link| link.digest == digest)?;
        links.remove(at).map(|link| link.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn link_opens_once_and_expires() {
        let links = OneTimeLinks::default();
        let token = links.add(ConsoleRole::Viewer).unwrap();
        assert_eq!(links.take("another"), None);
        assert_eq!(links.take(&token), Some(ConsoleRole::Viewer));
        assert_eq!(links.take(&token), None);
        let late = links.add(ConsoleRole::Operator).unwrap();
        tokio::time::advance(LINK_LIFETIME).await;
        assert_eq!(links.take(&late), None);
    }

    #[test]
    fn oldest_link_is_dropped_beyond_the_limit() {
        let links = OneTimeLinks::default();
        let tokens: Vec<_> = (0..=MAX_LINKS).map(|_| links.add(ConsoleRole::Operator).unwrap()).collect();
        assert_eq!(links.take(&tokens[0]), None);
        assert_eq!(links.take(&tokens[1]), Some(ConsoleRole::Operator));
    }
}
