use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode, Uri};

use super::active_tokens::ActiveTokens;
use super::dpop_key::DPOP;
use super::error::AuthorizationError;
use super::{AuthorizationGrant, Authorizer, challenged, now};
use crate::scopes::ScopeSet;
use crate::step_up::{AttemptState, AuthDecision, GiveUpReason, TokenUse, decide};

/// How often one request is sent at most, whatever the reason.
const MAX_SENDS: u32 = 8;

/// One request, which may be sent several times with other credentials.
#[derive(Debug)]
pub struct AuthorizedAttempt<'a> {
    authorizer: &'a Authorizer,
    operation: &'a str,
    /// The tokens of the last send.
    used: Option<Arc<ActiveTokens>>,
    /// The DPoP nonce of the last send.
    nonce: Option<String>,
    sends: u32,
    is_refreshed: bool,
    /// How many flows had ended when the request was sent.
    flows: u64,
}

impl<'a> AuthorizedAttempt<'a> {
    pub(super) fn new(authorizer: &'a Authorizer, operation: &'a str) -> Self {
        Self { authorizer, operation, used: None, nonce: None, sends: 0, is_refreshed: false, flows: 0 }
    }

    /// Returns the headers that authorize the next send; none if there is no token. A token that is about to expire is
    /// refreshed first.
    ///
    /// # Errors
    /// The token has expired and cannot be refreshed now, or the store failed.
    pub async fn headers(&mut self, method: &Method, uri: &Uri) -> Result<HeaderMap, AuthorizationError> {
        self.sends += 1;
        self.flows = self.authorizer.flows.load(Ordering::Relaxed);
        self.used = self.authorizer.fresh_tokens().await?;
        let mut headers = HeaderMap::new();
        let Some(active) = &self.used else { return Ok(headers) };
        headers.insert(AUTHORIZATION, active.authorization.clone());
        if let Some(key) = &active.dpop {
            self.nonce = self.authorizer.nonce.lock().clone();
            let token = Some(active.tokens.access_token.expose());
            headers.insert(DPOP, key.proof(method, uri, token, self.nonce.as_deref())?);
        }
        Ok(headers)
    }

    /// Reads the head of the response, and reports whether the request has to be sent again. Before it returns, other
    /// credentials were obtained if that is possible.
    ///
    /// # Errors
    /// The server demands authorization, and it could not be obtained.
    pub async fn is_refused(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<bool, AuthorizationError> {
        let authorizer = self.authorizer;
        authorizer.record_nonce(headers);
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.succeeded();
            return Ok(false);
        }
        if self.sends >= MAX_SENDS {
            return Err(AuthorizationError::Refused { attempts: self.sends, scopes: None });
        }
        let mut history = authorizer.flight.lock().await;
        // Another request has obtained other tokens meanwhile, or has failed to.
        if !same_tokens(self.used.as_ref(), authorizer.current.read().as_ref()) {
            return Ok(true);
        }
        if self.flows < authorizer.flows.load(Ordering::Relaxed)
            && let Some(error) = &history.last_failure
        {
            return Err(error.clone());
        }
        // Another process has logged in, refreshed the tokens or logged out.
        if status == StatusCode::UNAUTHORIZED && authorizer.adopt_stored(&mut history).await? {
            return Ok(true);
        }
        let state = AttemptState {
            failures: authorizer.attempts.lock().record(&authorizer.server_url, self.operation),
            requested: history.requested.clone(),
            token: self.token_use(),
            nonce: self.nonce.clone(),
        };
        authorizer.has_failures.store(true, Ordering::Relaxed);
        match decide(status, headers, &state) {
            AuthDecision::RepeatWithNonce(_) => {
                authorizer.attempts.lock().forgive(&authorizer.server_url, self.operation);
                Ok(true)
            }
            AuthDecision::Refresh => {
                self.is_refreshed = true;
                if !authorizer.refresh().await? {
                    let (trigger, scopes) = (challenged(headers), state.requested);
                    authorizer.authorize_operation(&mut history, self.operation, trigger, scopes).await?;
                }
                Ok(true)
            }
            AuthDecision::Authorize(scopes) => {
                let trigger = challenged(headers);
                authorizer.authorize_operation(&mut history, self.operation, trigger, scopes).await?;
                Ok(true)
            }
            AuthDecision::GiveUp(GiveUpReason::TooManyAttempts) => {
                let (attempts, scopes) = (state.failures.saturating_sub(1), demanded_scopes(headers));
                Err(AuthorizationError::Refused { attempts, scopes })
            }
            AuthDecision::GiveUp(_) => Ok(false),
        }
    }

    fn token_use(&self) -> TokenUse {
        match &self.used {
            Some(_) if self.is_refreshed => TokenUse::Refreshed,
            Some(active) if active.tokens.refresh_token.is_some() => TokenUse::Refreshable,
            _ => TokenUse::NotRefreshable,
        }
    }

    /// Forgets earlier failures of the operation.
    fn succeeded(&self) {
        let authorizer = self.authorizer;
        if authorizer.has_failures.load(Ordering::Relaxed) {
            let mut attempts = authorizer.attempts.lock();
            attempts.clear(&authorizer.server_url, self.operation);
            authorizer.has_failures.store(!attempts.is_empty(), Ordering::Relaxed);
        }
    }
}

pub(super) fn same_tokens(used: Option<&Arc<ActiveTokens>>, current: Option<&Arc<ActiveTokens>>) -> bool {
    match (used, current) {
        (Some(used), Some(current)) => Arc::ptr_eq(used, current),
        (None, None) => true,
        _ => false,
    }
}

impl Authorizer {
    /// Returns tokens that have not expired, refreshed if they are about to.
    async fn fresh_tokens(&self) -> Result<Option<Arc<ActiveTokens>>, AuthorizationError> {
        if let AuthorizationGrant::TokenExchange(setup) = &self.options.grant {
            return self.exchanged_tokens(setup).await;
        }
        let Some(active) = self.tokens().await? else { return Ok(None) };
        if !active.tokens.is_due_for_refresh(now()) {
            return Ok(Some(active));
        }
        let _in_flight = self.flight.lock().await;
        let current = self.current.read().clone();
        if same_tokens(Some(&active), current.as_ref()) {
            match self.refresh().await {
                Ok(_) => {}
                // It is good until it expires.
                Err(error) if !active.tokens.is_expired(now()) => {
                    tracing::debug!(%error, "the token was not refreshed yet");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self.current.read().clone())
    }
}

/// Returns the scopes that the challenges of a response name.
fn demanded_scopes(headers: &HeaderMap) -> Option<String> {
    let scopes = crate::challenge::ChallengeList::from_headers(headers).scope();
    scopes.map(|scopes: ScopeSet| scopes.to_string())
}
