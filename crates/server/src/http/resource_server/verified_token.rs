use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use trunkline_auth::access_token::{AccessTokenClaims, TokenRules};
use trunkline_protocol::ByteString;
use trunkline_session::Principal;
use trunkline_transport::Secret;

use super::options::ResourceServerOptions;
use super::token_recheck::TokenRecheck;
use crate::access_grant::{AccessGrant, RecheckFn};
use crate::http::auth::Authenticated;
use crate::revocation::RevocationSignal;

/// A token that has passed all checks but that of its proof, as it is cached.
#[derive(Debug)]
pub(super) struct VerifiedToken {
    pub(super) principal: Principal,
    grant: Arc<AccessGrant>,
    /// The thumbprint of the key that it is bound to.
    pub(super) key_thumbprint: Option<ByteString>,
    /// Whether it has the scopes that every request needs.
    pub(super) has_required_scopes: bool,
    /// When its issuer reported it as active, if it was introspected.
    pub(super) checked_at: Option<Instant>,
}

impl VerifiedToken {
    pub(super) fn new(
        (token, claims): (&str, &AccessTokenClaims),
        options: &ResourceServerOptions,
        rules: &TokenRules,
        revocation: RevocationSignal,
    ) -> Self {
        let mut grant = AccessGrant::new()
            .with_scopes(options.expand_scopes(&claims.scopes))
            .with_issuer(&*claims.issuer)
            .with_claims(claims.claims.to_raw())
            .with_access_token(Secret::new(token))
            .revoked_by(revocation);
        grant.is_key_bound = claims.key_thumbprint.is_some();
        grant.client_id = claims.client_id.as_deref().map(Box::from);
        // As long as the token is accepted, and no shorter.
        let skew = rules.skew.min(TokenRules::MAX_SKEW);
        grant.expires_at = claims.expires.and_then(|expires| {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(expires.plus(skew).0))
        });
        Self {
            principal: principal(&claims.issuer, &claims.subject),
            has_required_scopes: options.required_scopes.iter().all(|scope| grant.has_scope(scope)),
            grant: Arc::new(grant),
            key_thumbprint: claims.key_thumbprint.clone(),
            checked_at: None,
        }
    }

    /// Sets how the token is checked again while streams of it are open.
    pub(super) fn rechecked_by(mut self, recheck: impl FnOnce(Secret) -> TokenRecheck) -> Self {
        let Some(recheck) = self.grant.access_token.clone().map(recheck) else { return self };
        self.checked_at = Some(recheck.checked_at);
        let principal = self.principal.clone();
        let wait: RecheckFn = Arc::new(move || Box::pin(recheck.clone().wait_inactive(principal.clone())));
        Arc::make_mut(&mut self.grant).recheck = Some(wait);
        self
    }

    pub(super) fn sender(&self) -> Authenticated {
        Authenticated::new(self.principal.clone()).with_grant(self.grant.clone())
    }
}

/// Returns the issuer of a principal, if it is one of an access token.
pub fn issuer_of_principal(principal: &Principal) -> Option<&str> {
    match principal {
        Principal::Named(name) => name.split_once(' ').map(|(issuer, _)| issuer),
        Principal::Anonymous | Principal::Process => None,
    }
}

/// Returns the principal of an issuer and a subject. An issuer has no space, so that no two pairs have one name, and
/// no static token has a name with one.
fn principal(issuer: &str, subject: &str) -> Principal {
    Principal::Named(format!("{issuer} {subject}").into())
}
