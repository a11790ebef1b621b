use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Sleep;
use trunkline_protocol::RawJson;
use trunkline_transport::Secret;

use crate::call::BoxFuture;
use crate::revocation::RevocationSignal;

/// What an accepted credential grants, and how long.
///
/// An authenticator makes it once for each credential and shares it between requests. Its debug output has neither the
/// credential nor its claims.
///
/// ```
/// use trunkline_server::AccessGrant;
///
/// let grant = AccessGrant::new().with_scopes(["files:read", "files:write"]);
/// assert!(grant.has_scope("files:write"));
/// assert!(!grant.has_scope("files"));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct AccessGrant {
    /// The scopes of the token (RFC 6749 §3.3).
    pub scopes: Vec<Box<str>>,
    /// The OAuth client that the token was issued to, as its authorization server names it.
    pub client_id: Option<Box<str>>,
    /// The authorization server that issued the token.
    pub issuer: Option<Box<str>>,
    /// The claims of the token, as a JSON object, if it has any.
    pub claims: Option<RawJson>,
    /// The access token itself, for a hub that exchanges it (RFC 8693). It must be sent to no other server than that of
    /// its issuer; `None` for credentials that cannot be exchanged.
    pub access_token: Option<Secret>,
    /// Whether the token is bound to a key (DPoP): then challenges name that scheme.
    pub is_key_bound: bool,
    /// When the credential expires: streams that were opened with it end then.
    pub expires_at: Option<SystemTime>,
    /// The signal that the credential was revoked: streams and calls that were begun with it end then.
    pub revocation: Option<RevocationSignal>,
    /// Checks the credential again and again while a stream of it is open; `None` if its end is known otherwise.
    pub(crate) recheck: Option<RecheckFn>,
}

/// Begins to check a credential again and again; the future is ready once it is not valid any more.
pub(crate) type RecheckFn = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl AccessGrant {
    /// Makes a grant without scopes that never ends.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the scopes.
    #[must_use]
    pub fn with_scopes<S: Into<Box<str>>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the OAuth client.
    #[must_use]
    pub fn with_client_id(mut self, client_id: impl Into<Box<str>>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// Sets the issuer of the token.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<Box<str>>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets the claims of the token.
    #[must_use]
    pub fn with_claims(mut self, claims: RawJson) -> Self {
        self.claims = Some(claims);
        self
    }

    /// Sets the access token itself.
    #[must_use]
    pub fn with_access_token(mut self, token: Secret) -> Self {
        self.access_token = Some(token);
        self
    }

    /// Sets that the token is bound to a key.
    #[must_use]
    pub fn bound_to_key(mut self) -> Self {
        self.is_key_bound = true;
        self
    }

    /// Sets when the credential expires.
    #[must_use]
    pub fn expiring_at(mut self, expires_at: SystemTime) -> Self {
        self.expires_at = Some(expires_at);
        self
    }

    /// Sets the signal that the credential was revoked.
    #[must_use]
    pub fn revoked_by(mut self, signal: RevocationSignal) -> Self {
        self.revocation = Some(signal);
        self
    }

    /// Reports whether the token has a scope. Scopes are opaque and compared whole.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| **granted == *scope)
    }

    /// Returns the end of a grant as a future, which is ready at once for one that has ended; `None` for one that never
    /// ends.
    pub(crate) fn end(grant: Option<&Arc<Self>>) -> Option<BoxFuture<'static, ()>> {
        let ends = |grant: &&Arc<Self>| {
            grant.expires_at.is_some() || grant.revocation.is_some() || grant.recheck.is_some()
        };
        let grant = grant.filter(ends)?.clone();
        Some(Box::pin(async move {
            tokio::select! {
                biased;
                () = revoked(grant.revocation.as_ref()) => {}
                () = expired(grant.expires_at) => {}
                () = invalid(grant.recheck.as_ref()) => {}
            }
        }))
    }
}

async fn revoked(signal: Option<&RevocationSignal>) {
    match signal {
        Some(signal) => signal.revoked().await,
        None => std::future::pending().await,
    }
}

async fn invalid(recheck: Option<&RecheckFn>) {
    match recheck {
        Some(recheck) => recheck().await,
        None => std::future::pending().await,
    }
}

async fn expired(at: Option<SystemTime>) {
    match at.map(sleep_until) {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

fn sleep_until(at: SystemTime) -> Sleep {
    tokio::time::sleep(at.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Shows that there are claims and a token, but not what they are: they describe a person, or are a secret.
impl fmt::Debug for AccessGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessGrant")
            .field("scopes", &self.scopes)
            .field("client_id", &self.client_id)
            .field("issuer", &self.issuer)
            .field("has_claims", &self.claims.is_some())
            .field("has_access_token", &self.access_token.is_some())
            .field("is_key_bound", &self.is_key_bound)
            .field("expires_at", &self.expires_at)
            .field("revocation", &self.revocation)
            .field("is_rechecked", &self.recheck.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::revocation::Revocation;

    #[tokio::test(start_paused = true)]
    async fn grant_ends_at_its_expiry_or_when_revoked() {
        let end = |grant: AccessGrant| AccessGrant::end(Some(&Arc::new(grant)));
        assert!(end(AccessGrant::new()).is_none(), "never");
        let now = SystemTime::now();
        for (expiry, expected) in [
            (now - Duration::from_secs(1), Duration::ZERO),
            (now + Duration::from_secs(3600), Duration::from_secs(3600)),
        ] {
            let began = tokio::time::Instant::now();
            end(AccessGrant::new().expiring_at(expiry)).expect("it ends").await;
            let took = began.elapsed();
            assert!(took <= expected && took + Duration::from_secs(60) > expected, "{took:?}");
        }
        let revocation = Revocation::new();
        let grant =
            AccessGrant::new().revoked_by(revocation.signal()).expiring_at(now + Duration::from_secs(3600));
        let mut ending = end(grant.clone()).expect("it ends");
        assert_eq!((&mut ending).now_or_never(), None);
        drop(revocation);
        assert_eq!(ending.now_or_never(), Some(()));
        assert_eq!(end(grant).expect("it ends").now_or_never(), Some(()), "revoked before");
    }

    #[test]
    fn debug_output_of_a_grant_has_no_claims_and_no_token() {
        let claims = RawJson::from(serde_json::json!({ "email": "sentinel@example.com" }));
        let grant = AccessGrant::new().with_claims(claims).with_access_token(Secret::new("sentinel"));
        let shown = format!("{grant:?}");
        assert!(!shown.contains("sentinel"), "{shown}");
    }
}
