use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::request::Parts;
use parking_lot::Mutex;
use tokio::time::Instant;
use trunkline_auth::access_token::{
    CacheableToken, RecentTokens, TokenDigest, TokenError, TokenSource, VerifiedTokens,
};
use trunkline_auth::dpop::ProofError;
use trunkline_auth::issuer::IssuerError;
use trunkline_session::Timestamp;

use super::dpop::{DPOP_NONCE, DpopMode, ProofChecker};
use super::error::ResourceServerError;
use super::options::ResourceServerOptions;
use super::state::{IssuerState, ResourceServerState};
use super::token_recheck::TokenRecheck;
use super::verified_token::VerifiedToken;
use crate::call::BoxFuture;
use crate::http::auth::{
    AuthChallenge, AuthRefusal, Authenticated, AuthenticationResult, Authenticator, TokenScheme,
    presented_token, read_token,
};
use crate::http::protected_resource::ProtectedResource;

/// Authenticates requests by access tokens of trusted issuers, and by static tokens beside them.
///
/// The principal of an access token is its issuer and its subject. Clones share everything.
///
/// ```
/// use trunkline_server::http::resource_server::{
///     ResourceServer, ResourceServerOptions, TokenRules, TrustedIssuer,
/// };
///
/// let resource = "https://hub.example/mcp";
/// let issuer = TrustedIssuer::jwt(TokenRules::new("https://login.example", [resource]));
/// let options = ResourceServerOptions::new(resource).with_issuer(issuer).with_required_scopes(["mcp:use"]);
/// let authenticator = ResourceServer::new(options)?;
/// # Ok::<(), trunkline_server::http::resource_server::ResourceServerError>(())
/// ```
#[derive(Clone)]
pub struct ResourceServer {
    inner: Arc<ResourceServerInner>,
}

pub(super) struct ResourceServerInner {
    state: ArcSwap<ResourceServerState>,
    verified: Arc<VerifiedTokens<Arc<VerifiedToken>>>,
    proofs: ProofChecker,
    /// One is locked while a token is introspected, so that further requests with it wait for the result, and the
    /// issuer has a bounded number of requests at a time.
    introspections: [tokio::sync::Mutex<()>; MAX_INTROSPECTIONS],
    /// When the issuer that introspects was last found to be unavailable.
    unavailable_at: Mutex<Option<Instant>>,
}

/// The most introspections at a time; further requests wait.
pub const MAX_INTROSPECTIONS: usize = 64;

thread_local! {
    static RECENT: RefCell<RecentTokens<Arc<VerifiedToken>>> = const { RefCell::new(RecentTokens::new()) };
}

impl ResourceServer {
    /// Makes a resource server. Nothing is fetched before the first token.
    ///
    /// # Errors
    /// The options cannot be used.
    pub fn new(options: ResourceServerOptions) -> Result<Self, ResourceServerError> {
        let verified = Arc::new(VerifiedTokens::new(options.verified_tokens));
        let proofs = ProofChecker::new(&options.dpop).ok_or(ResourceServerError::NoRandom)?;
        let state = ResourceServerState::new(options, None, clearing(&verified))?;
        let introspections = std::array::from_fn(|_| tokio::sync::Mutex::default());
        let state = ArcSwap::from_pointee(state);
        let unavailable_at = Mutex::default();
        let inner = ResourceServerInner { state, verified, proofs, introspections, unavailable_at };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Replaces the options. Tokens are checked again by the new ones; what was opened with a token of an issuer that is
    /// described otherwise, or not at all, ends.
    ///
    /// # Errors
    /// The options cannot be used; nothing has changed.
    pub fn replace(&self, options: ResourceServerOptions) -> Result<(), ResourceServerError> {
        let inner = &self.inner;
        let before = inner.state.load_full();
        let after = ResourceServerState::new(options, Some(&before), clearing(&inner.verified))?;
        let after = Arc::new(after);
        inner.state.store(after.clone());
        inner.verified.clear();
        let is_kept = |issuer: &Arc<IssuerState>| after.issuers.iter().any(|kept| Arc::ptr_eq(kept, issuer));
        before.issuers.iter().filter(|issuer| !is_kept(issuer)).for_each(|issuer| issuer.revocation.revoke());
        Ok(())
    }
}

/// Returns what is called when keys were withdrawn: all tokens are checked again.
fn clearing(verified: &Arc<VerifiedTokens<Arc<VerifiedToken>>>) -> impl Fn() + Clone + Send + Sync + use<> {
    let verified = verified.clone();
    move || verified.clear()
}

fn now() -> Timestamp {
    Timestamp::from_system(SystemTime::now())
}

impl ResourceServerInner {
    /// Returns the result of an earlier check of a token.
    fn cached(&self, token: &str, now: Timestamp) -> Option<Result<Arc<VerifiedToken>, TokenError>> {
        RECENT.with_borrow_mut(|recent| recent.get(&self.verified, token, now))
    }

    /// Returns the sender of a request with an access token that was checked before and needs no proof.
    fn recognize(&self, state: &ResourceServerState, token: &[u8]) -> Option<Authenticated> {
        let token = std::str::from_utf8(token).ok()?;
        let known = self.cached(token, now())?.ok()?;
        let is_bearer = known.key_thumbprint.is_none() && state.options.dpop.mode != DpopMode::Required;
        (is_bearer && known.has_required_scopes).then(|| known.sender())
    }

    async fn authenticate(self: &Arc<Self>, request: &Parts) -> Result<Authenticated, AuthRefusal> {
        let state = self.state.load_full();
        let Some(presented) = presented_token(request)? else { return Err(missing_token(&state)) };
        let scheme = presented.scheme;
        if scheme == TokenScheme::Bearer
            && let Some(sender) = state.find_static(presented.token)
        {
            return Ok(sender);
        }
        if scheme == TokenScheme::Dpop && state.options.dpop.mode == DpopMode::Off {
            return Err(missing_token(&state));
        }
        let token = std::str::from_utf8(presented.token).map_err(|_| TokenError::Malformed);
        let checked = match token {
            Ok(token) => self.check(&state, token).await.map(|checked| (token, checked)),
            Err(error) => Err(error.into()),
        };
        let (token, checked) = checked.map_err(|error| token_refusal(&state, scheme, error))?;
        let (dpop, uris, now) = (&state.options.dpop, &state.public_uris, now());
        let sender = self.proofs.check(request, (scheme, token), &checked, (dpop, uris), now);
        let sender = sender.map_err(|error| self.proof_refusal(&state, scheme, error))?;
        if checked.has_required_scopes {
            return Ok(sender);
        }
        let scopes = &state.options.required_scopes;
        let challenge = AuthChallenge::new(scheme.as_str())
            .param("error", "insufficient_scope")
            .param("scope", scopes.join(" "));
        Err(AuthRefusal::insufficient_scope(scopes).without_challenges().with_challenge(challenge))
    }

    /// Checks a token, by the cache or by its issuer.
    async fn check(
        self: &Arc<Self>,
        state: &ResourceServerState,
        token: &str,
    ) -> Result<Arc<VerifiedToken>, IssuerError> {
        if let Some(known) = self.cached(token, now()) {
            return Ok(known?);
        }
        let issuer = state.issuer_of(token)?;
        let digest = TokenDigest::of(token);
        let _turn = match self.introspections.get(digest.shard_of(MAX_INTROSPECTIONS)) {
            Some(turn) if issuer.introspects() => Some(turn.lock().await),
            _ => None,
        };
        if let Some(known) = self.cached(token, now()) {
            return Ok(known?);
        }
        self.verify(state, issuer, (token, digest)).await
    }

    /// Checks a token again for a stream that knows the result of a check at `known`, and returns when the result is from.
    /// One introspection, or one failure since the stream woke, is enough for all streams that wait here.
    pub(super) async fn recheck(
        self: &Arc<Self>,
        token: &str,
        known: Instant,
        woken: Instant,
    ) -> Result<(Arc<VerifiedToken>, Instant), IssuerError> {
        let state = self.state.load_full();
        let issuer = state.issuer_of(token)?;
        let digest = TokenDigest::of(token);
        let _turn = match self.introspections.get(digest.shard_of(MAX_INTROSPECTIONS)) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        if let Some(cached) = self.verified.get(digest, now()) {
            let cached = cached?;
            if let Some(checked_at) = cached.checked_at.filter(|checked_at| *checked_at > known) {
                return Ok((cached, checked_at));
            }
        }
        if self.unavailable_at.lock().is_some_and(|failed| failed >= woken) {
            return Err(IssuerError::Unavailable { retry_after: Duration::ZERO });
        }
        let token = self.verify(&state, issuer, (token, digest)).await?;
        let checked_at = token.checked_at.unwrap_or(woken);
        Ok((token, checked_at))
    }

    /// Has the issuer of a token check it, and stores the result.
    async fn verify(
        self: &Arc<Self>,
        state: &ResourceServerState,
        issuer: &IssuerState,
        (token, digest): (&str, TokenDigest),
    ) -> Result<Arc<VerifiedToken>, IssuerError> {
        let (generation, introspects) = (self.verified.generation(), issuer.introspects());
        let claims = issuer.client.check(token, now()).await;
        match &claims {
            Err(IssuerError::Refused(error)) if introspects => {
                self.verified.insert_refused(digest, *error, generation, now());
            }
            Err(_) if introspects => *self.unavailable_at.lock() = Some(Instant::now()),
            _ => {}
        }
        let claims = claims?;
        let (rules, revocation) = (&issuer.client.trusted().rules, issuer.revocation.signal());
        let mut value = VerifiedToken::new((token, &claims), &state.options, rules, revocation);
        if introspects {
            let interval = state.options.verified_tokens.introspected_age;
            value = value.rechecked_by(|token| TokenRecheck::new(Arc::downgrade(self), token, interval));
        }
        let value = Arc::new(value);
        let source = if introspects { TokenSource::Introspection } else { TokenSource::Jwt };
        let cached =
            CacheableToken { value: value.clone(), size: token.len(), source, expires: claims.expires };
        self.verified.insert(digest, cached, generation, now());
        Ok(value)
    }

    fn proof_refusal(
        &self,
        state: &ResourceServerState,
        scheme: TokenScheme,
        error: ProofError,
    ) -> AuthRefusal {
        let refusal = challenged(state, scheme, error.code(), error.to_string());
        match self.proofs.nonce(now()).filter(|_| error == ProofError::Nonce) {
            Some(nonce) => refusal.with_header(DPOP_NONCE, nonce),
            None => refusal,
        }
    }
}

/// Refuses a request without a credential.
fn missing_token(state: &ResourceServerState) -> AuthRefusal {
    let challenges = state.options.dpop.challenges(TokenScheme::Bearer, None);
    challenges
        .into_iter()
        .fold(AuthRefusal::missing_token().without_challenges(), AuthRefusal::with_challenge)
}

/// The description of every token without a verified signature.
const UNVERIFIED: &str = "the access token is not valid";

/// Refuses a token. The reason is named only if its issuer has signed it: in any other case it would reveal
/// which issuers and static tokens there are.
fn token_refusal(state: &ResourceServerState, scheme: TokenScheme, error: IssuerError) -> AuthRefusal {
    let error = match error {
        IssuerError::Refused(error) => error,
        IssuerError::Unavailable { retry_after } => return AuthRefusal::unavailable(retry_after),
        _ => TokenError::Introspection,
    };
    let description = match error {
        // Without an issuer there is no signature to verify.
        TokenError::Claim("iss") => UNVERIFIED.to_owned(),
        TokenError::Expired
        | TokenError::NotYetValid
        | TokenError::Audience
        | TokenError::Type
        | TokenError::Claim(_)
        | TokenError::Confirmation => error.to_string(),
        _ => UNVERIFIED.to_owned(),
    };
    challenged(state, scheme, "invalid_token", description)
}

fn challenged(
    state: &ResourceServerState,
    scheme: TokenScheme,
    error: &'static str,
    description: String,
) -> AuthRefusal {
    let challenges = state.options.dpop.challenges(scheme, Some((error, &description)));
    let refusal = AuthRefusal::invalid_token("").without_challenges().with_error(error, description);
    challenges.into_iter().fold(refusal, AuthRefusal::with_challenge)
}

impl Authenticator for ResourceServer {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        AuthenticationResult::Pending(Box::pin(self.inner.authenticate(request)))
    }

    fn recognize(&self, authorization: &[u8]) -> Option<Authenticated> {
        let presented = read_token(authorization)??;
        if presented.scheme != TokenScheme::Bearer {
            return None;
        }
        let state = self.inner.state.load();
        // Static tokens rarely have a dot, and others always do: each is looked up where it is likely first.
        if presented.token.contains(&b'.') {
            self.inner.recognize(&state, presented.token).or_else(|| state.find_static(presented.token))
        } else {
            state.find_static(presented.token).or_else(|| self.inner.recognize(&state, presented.token))
        }
    }

    fn protected_resource(&self) -> Option<Arc<ProtectedResource>> {
        Some(self.inner.state.load().resource.clone())
    }

    fn server_metadata(&self) -> Option<BoxFuture<'_, Option<Bytes>>> {
        let issuer = self.inner.state.load().issuers.first()?.clone();
        Some(Box::pin(async move { issuer.client.metadata_document().await }))
    }
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer").field("state", &*self.inner.state.load()).finish_non_exhaustive()
    }
}
