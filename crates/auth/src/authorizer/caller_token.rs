use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use trunkline_transport::Secret;

use super::error::AuthorizationError;
use super::now;

/// The access token with which a caller has made a request, to be exchanged for one of a server. Clones are the same.
#[derive(Clone)]
pub struct CallerToken(Arc<TokenAndExpiry>);

struct TokenAndExpiry {
    token: Secret,
    expires_at: Option<SystemTime>,
}

impl CallerToken {
    /// Makes one of a verified token. What it is exchanged for is used until it expires, at most.
    pub fn new(token: Secret, expires_at: Option<SystemTime>) -> Self {
        Self(Arc::new(TokenAndExpiry { token, expires_at }))
    }

    pub(super) fn token(&self) -> &Secret {
        &self.0.token
    }

    pub(super) fn expires_at(&self) -> Option<SystemTime> {
        self.0.expires_at
    }

    /// Returns an error if the token has expired.
    pub(super) fn check_expiry(&self) -> Result<(), AuthorizationError> {
        match self.0.expires_at.is_some_and(|end| end <= now()) {
            true => Err(AuthorizationError::SubjectTokenExpired),
            false => Ok(()),
        }
    }
}

impl PartialEq for CallerToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.token == other.0.token
    }
}

impl Eq for CallerToken {}

impl fmt::Debug for CallerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerToken").field("expires_at", &self.0.expires_at).finish_non_exhaustive()
    }
}

/// The token of a caller's latest request, for requests to the server that no call of the caller has caused. Clones are
/// the same.
#[derive(Clone, Debug, Default)]
pub struct SubjectToken(Arc<Mutex<Option<CallerToken>>>);

impl SubjectToken {
    /// Sets the token, and reports whether it is another one than before.
    pub fn set(&self, token: &CallerToken) -> bool {
        let mut current = self.0.lock();
        let is_new = current.as_ref() != Some(token);
        if is_new {
            *current = Some(token.clone());
        }
        is_new
    }

    pub(super) fn latest(&self) -> Option<CallerToken> {
        self.0.lock().clone()
    }
}

impl From<CallerToken> for SubjectToken {
    fn from(token: CallerToken) -> Self {
        Self(Arc::new(Mutex::new(Some(token))))
    }
}
