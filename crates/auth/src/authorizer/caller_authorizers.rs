//! The authorizers of the single tokens of a caller.
//!
//! What a token was exchanged for is used for requests with that token only: a later token of the same user may have
//! fewer rights, and an expired one has none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::caller_token::CallerToken;
use super::exchange::TokenExchangeSetup;
use super::{AuthorizationError, AuthorizationGrant, AuthorizationHistory, Authorizer, now};
use crate::token_store::MemoryTokenStore;

/// The tokens of a caller that are exchanged at the same time; beyond it the one that was not used for the longest is
/// forgotten, and exchanged again when it is used.
pub const MAX_CALLER_TOKENS: usize = 8;

/// How long a token is not exchanged again after a refusal that is not about the token itself.
pub const EXCHANGE_REFUSAL_AGE: Duration = Duration::from_secs(30);

/// The least recently used first.
#[derive(Default)]
pub(super) struct CallerAuthorizers(Mutex<VecDeque<(CallerToken, Arc<Authorizer>)>>);

impl Authorizer {
    /// Returns the authorizer of requests to the server that belong to a request of a caller; `None` for requests that
    /// belong to none, which use the caller's latest token. Without a token exchange they are all the same.
    #[must_use]
    pub fn acting_for(self: &Arc<Self>, token: Option<&CallerToken>) -> Arc<Self> {
        let AuthorizationGrant::TokenExchange(setup) = &self.options.grant else { return self.clone() };
        match token.cloned().or_else(|| setup.subject_token.latest()) {
            Some(token) => self.of_token(setup, token),
            // It fails for want of a token.
            None => self.clone(),
        }
    }

    fn of_token(&self, setup: &TokenExchangeSetup, token: CallerToken) -> Arc<Self> {
        let mut known = self.callers.0.lock();
        if let Some(at) = known.iter().position(|(of, _)| *of == token)
            && let Some(found) = known.remove(at)
        {
            let authorizer = found.1.clone();
            known.push_back(found);
            return authorizer;
        }
        let present = now();
        known.retain(|(of, _)| of.expires_at().is_none_or(|end| end > present));
        if known.len() >= MAX_CALLER_TOKENS {
            known.pop_front();
        }
        let mut options = self.options.clone();
        options.grant = AuthorizationGrant::TokenExchange(TokenExchangeSetup {
            subject_token: token.clone().into(),
            ..setup.clone()
        });
        // They are obtained again at any time, so that they need not be on a disk, nor where another token is found.
        options.store = Arc::new(MemoryTokenStore::default());
        let authorizer = Arc::new(Self::new(options, &self.server, self.dialer.clone()));
        known.push_back((token, authorizer.clone()));
        authorizer
    }

    /// Returns why the last exchange was refused, if it is not repeated now. Only the refusal of the token itself is final:
    /// any other is also caused by the configuration of the authorization server or the credentials of the client.
    pub(super) fn standing_refusal(&self, history: &AuthorizationHistory) -> Option<AuthorizationError> {
        let AuthorizationGrant::TokenExchange(_) = &self.options.grant else { return None };
        let (refusal, failed_at) = (history.last_failure.as_ref()?, history.failed_at?);
        let stands = match refusal.oauth_error()?.code() {
            "invalid_grant" => true,
            "temporarily_unavailable" | "server_error" => false,
            _ => failed_at.elapsed() < EXCHANGE_REFUSAL_AGE,
        };
        stands.then(|| refusal.clone())
    }
}
