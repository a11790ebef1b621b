//! What to do when an MCP server refuses a request as unauthorized.
//!
//! MCP, Scope Challenge Handling: a client authorizes again for more scopes, a few times at most, and remembers what it
//! tried for each resource and operation.

use std::collections::{HashMap, VecDeque};

use http::{HeaderMap, StatusCode};

use crate::challenge::ChallengeList;
use crate::dpop_nonce::{is_nonce_challenged, supplied_nonce};
use crate::scopes::ScopeSet;

/// How often one operation is tried at one resource, the first time included.
pub const MAX_ATTEMPTS: u32 = 3;

/// The number of operations that an [`AttemptLog`] remembers; beyond it the oldest is dropped.
pub const MAX_LOGGED_OPERATIONS: usize = 1024;

/// What was tried for an operation so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptState {
    /// How often the operation was refused as unauthorized, including now.
    pub failures: u32,
    /// The scopes that were requested for the resource so far.
    pub requested: ScopeSet,
    /// What the token that was sent allows.
    pub token: TokenUse,
    /// The DPoP nonce that the refused request had.
    pub nonce: Option<String>,
}

/// The state of the token that a refused request had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenUse {
    /// There was none, or it cannot be refreshed.
    #[default]
    NotRefreshable,
    /// It has a refresh token that was not tried yet for this operation.
    Refreshable,
    /// It was refreshed for this operation already.
    Refreshed,
}

/// What to do about a refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthDecision {
    /// Refresh the token, and repeat the request.
    Refresh,
    /// Repeat the request with a DPoP proof that has this nonce.
    RepeatWithNonce(String),
    /// Authorize with these scopes, and repeat the request. An empty set leaves the choice to the flow.
    Authorize(ScopeSet),
    /// Report the failure.
    GiveUp(GiveUpReason),
}

/// Why a refused request is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUpReason {
    /// The response is not about authorization.
    NotAuthorization,
    /// The server forbids the request, and no scope would change that.
    Forbidden,
    /// It was tried [`MAX_ATTEMPTS`] times.
    TooManyAttempts,
}

/// Decides what to do about a response, by its status and headers.
pub fn decide(status: StatusCode, headers: &HeaderMap, state: &AttemptState) -> AuthDecision {
    let challenges = ChallengeList::from_headers(headers);
    match status {
        StatusCode::UNAUTHORIZED => {
            if let Some(nonce) = supplied_nonce(headers).filter(|_| is_nonce_challenged(headers))
                && state.nonce.as_deref() != Some(nonce)
            {
                return AuthDecision::RepeatWithNonce(nonce.to_owned());
            }
            if state.token == TokenUse::Refreshable && state.failures < MAX_ATTEMPTS {
                return AuthDecision::Refresh;
            }
        }
        StatusCode::FORBIDDEN if challenges.error() == Some("insufficient_scope") => {}
        StatusCode::FORBIDDEN => return AuthDecision::GiveUp(GiveUpReason::Forbidden),
        _ => return AuthDecision::GiveUp(GiveUpReason::NotAuthorization),
    }
    if state.failures >= MAX_ATTEMPTS {
        return AuthDecision::GiveUp(GiveUpReason::TooManyAttempts);
    }
    AuthDecision::Authorize(state.requested.union(&challenges.scope().unwrap_or_default()))
}

/// How often operations failed, by resource and operation.
#[derive(Debug, Default)]
pub struct AttemptLog {
    failures: HashMap<(String, String), u32>,
    order: VecDeque<(String, String)>,
}

impl AttemptLog {
    /// Records a failure of an operation, such as `tools/call write`, and returns how many there were.
    pub fn record(&mut self, resource: &str, operation: &str) -> u32 {
        let key = (resource.to_owned(), operation.to_owned());
        if !self.failures.contains_key(&key) {
            if self.order.len() >= MAX_LOGGED_OPERATIONS
                && let Some(oldest) = self.order.pop_front()
            {
                self.failures.remove(&oldest);
            }
            self.order.push_back(key.clone());
        }
        let failures = self.failures.entry(key).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    /// Takes back the last failure of an operation, which turned out to be none.
    pub fn forgive(&mut self, resource: &str, operation: &str) {
        if let Some(failures) = self.failures.get_mut(&(resource.to_owned(), operation.to_owned())) {
            *failures = failures.saturating_sub(1);
        }
    }

    /// Reports whether no operation has failed.
    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    /// Forgets the failures of an operation, after it succeeded.
    pub fn clear(&mut self, resource: &str, operation: &str) {
        let key = (resource.to_owned(), operation.to_owned());
        if self.failures.remove(&key).is_some() {
            self.order.retain(|other| *other != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, challenge: &str, state: &AttemptState, expected: &AuthDecision) {
        let mut headers = HeaderMap::new();
        headers.insert("www-authenticate", challenge.parse().unwrap());
        headers.insert("dpop-nonce", "n".parse().unwrap());
        let decision = decide(StatusCode::from_u16(status).unwrap(), &headers, state);
        assert_eq!(decision, *expected, "{status} {challenge} {state:?}");
    }

    #[test]
    fn refusals_lead_to_refresh_authorization_or_the_end() {
        const MORE: &str = r#"Bearer error="insufficient_scope", scope="w""#;
        let state = |failures, token| AttemptState {
            failures,
            token,
            requested: ScopeSet::parse("r"),
            nonce: Some("old".to_owned()),
        };
        let authorize = |scopes: &str| AuthDecision::Authorize(ScopeSet::parse(scopes));
        let give_up = AuthDecision::GiveUp;
        let first = state(1, TokenUse::NotRefreshable);
        let table = [
            (401, "Bearer", first.clone(), authorize("r")),
            (401, "Bearer scope=\"x r\"", first.clone(), authorize("r x")),
            (401, "Bearer", state(1, TokenUse::Refreshable), AuthDecision::Refresh),
            (401, "Bearer", state(2, TokenUse::Refreshed), authorize("r")),
            (401, "Bearer", state(3, TokenUse::Refreshed), give_up(GiveUpReason::TooManyAttempts)),
            (401, "Bearer", state(3, TokenUse::Refreshable), give_up(GiveUpReason::TooManyAttempts)),
            (403, MORE, first.clone(), authorize("r w")),
            (403, MORE, state(1, TokenUse::Refreshable), authorize("r w")),
            (403, MORE, state(2, TokenUse::NotRefreshable), authorize("r w")),
            (403, MORE, state(3, TokenUse::NotRefreshable), give_up(GiveUpReason::TooManyAttempts)),
            (403, "Bearer scope=\"w\"", first.clone(), give_up(GiveUpReason::Forbidden)),
            (404, MORE, first.clone(), give_up(GiveUpReason::NotAuthorization)),
            (
                401,
                "DPoP error=\"use_dpop_nonce\"",
                first.clone(),
                AuthDecision::RepeatWithNonce("n".to_owned()),
            ),
        ];
        for (status, challenge, state, expected) in table {
            check(status, challenge, &state, &expected);
        }
        // The same nonce again is not repeated.
        let same = AttemptState { nonce: Some("n".to_owned()), ..first };
        check(401, "DPoP error=\"use_dpop_nonce\"", &same, &authorize("r"));
    }

    #[test]
    fn attempts_are_counted_by_resource_and_operation() {
        let mut log = AttemptLog::default();
        assert_eq!(
            [log.record("r", "a"), log.record("r", "a"), log.record("r", "b"), log.record("s", "a")],
            [1, 2, 1, 1]
        );
        log.clear("r", "a");
        assert_eq!([log.record("r", "a"), log.record("r", "b")], [1, 2]);
        for n in 0..2 * MAX_LOGGED_OPERATIONS {
            log.record("r", &n.to_string());
        }
        assert_eq!((log.failures.len(), log.order.len()), (MAX_LOGGED_OPERATIONS, MAX_LOGGED_OPERATIONS));
    }
}
