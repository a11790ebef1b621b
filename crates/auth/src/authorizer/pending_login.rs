//! Authorizations that need a user that the authorizer itself cannot reach.
//!
//! A program with many users, such as a hub, sends requests with one [`Authorizer`] and lets the user log in with
//! another: the first one reports what is [pending](Authorizer::pending), the second one
//! [obtains it](Authorizer::log_in_for), and both share a store, from which the first one [reloads](Authorizer::reload).

use super::error::AuthorizationError;
use super::{AuthorizationHistory, Authorizer};
use crate::flow::FlowTrigger;
use crate::scopes::ScopeSet;

/// What a user has to authorize.
#[derive(Clone, Debug)]
pub struct PendingLogin {
    pub(super) trigger: FlowTrigger,
    pub(super) scopes: ScopeSet,
    /// The operation that the server refused.
    pub(super) operation: String,
}

impl PendingLogin {
    /// Returns the scopes that are requested at least; the metadata of the server may add some.
    pub fn scopes(&self) -> &ScopeSet {
        &self.scopes
    }
}

impl Authorizer {
    /// Returns what a user has to authorize, if a request was refused and the [user agent](crate::user_agent) of this
    /// authorizer could not reach the user.
    pub fn pending(&self) -> Option<PendingLogin> {
        self.pending.lock().clone()
    }

    /// Obtains a token for what is pending at another authorizer of the same store, principal and server.
    ///
    /// # Errors
    /// A step of the flow failed.
    pub async fn log_in_for(&self, pending: PendingLogin) -> Result<(), AuthorizationError> {
        self.load().await?;
        let mut history = self.flight.lock().await;
        let scopes = history.requested.union(&pending.scopes);
        self.authorize(&mut history, pending.trigger, scopes).await
    }

    /// Uses what the store has now: the tokens of a login elsewhere, or none after a logout. Reports whether there are
    /// other tokens than before.
    ///
    /// # Errors
    /// The store failed.
    pub async fn reload(&self) -> Result<bool, AuthorizationError> {
        self.load().await?;
        let mut history = self.flight.lock().await;
        let mut is_new = self.adopt_stored(&mut history).await?;
        if self.current.read().is_none() {
            // They may be of another client or issuer than before.
            is_new = self.adopt_stored(&mut history).await?;
        }
        let pending = if is_new { self.pending.lock().take() } else { None };
        if let Some(pending) = pending {
            // The login is an attempt of this operation: a server that demands another one each time is given up.
            self.attempts.lock().record(&self.server_url, &pending.operation);
            self.has_failures.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        history.last_failure = None;
        Ok(is_new)
    }

    /// Authorizes a refused operation. If that needs a user who cannot be reached, it is pending, and is no attempt; nor is
    /// a token exchange that failed, since the server got no new token.
    pub(super) async fn authorize_operation(
        &self,
        history: &mut AuthorizationHistory,
        operation: &str,
        trigger: FlowTrigger,
        scopes: ScopeSet,
    ) -> Result<(), AuthorizationError> {
        let outcome = self.authorize(history, trigger.clone(), scopes.clone()).await;
        if matches!(outcome, Err(AuthorizationError::Exchange { .. })) {
            self.attempts.lock().forgive(&self.server_url, operation);
        }
        if outcome.as_ref().is_err_and(AuthorizationError::needs_login) {
            self.attempts.lock().forgive(&self.server_url, operation);
            let operation = operation.to_owned();
            *self.pending.lock() = Some(PendingLogin { trigger, scopes, operation });
        }
        outcome
    }
}
