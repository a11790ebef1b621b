//! Authorizes the requests of a client to one MCP server.
//!
//! [`Authorizer`] drives the [flow](crate::flow) with real connections and a real user: it adds credentials to requests,
//! and when a server refuses one, it obtains or refreshes a token and has the request sent again.
//!
//! # Invariants
//! - At a time one refresh or flow is under way for an authorizer; requests that were refused meanwhile use its outcome.
//! - New tokens are stored before they are used.

mod active_tokens;
mod attempt;
mod caller_authorizers;
mod caller_token;
mod client_auth;
mod clients;
mod discover;
mod dpop_key;
mod driver;
mod error;
mod exchange;
mod login;
mod logout;
mod options;
mod pending_login;
mod refresh_job;
mod refreshing;
mod stored_tokens;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

use http::HeaderMap;
use parking_lot::{Mutex, RwLock};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use trunkline_http1::Url;
use trunkline_transport::dial::{AddressPolicy, Dialer};

use self::active_tokens::ActiveTokens;
pub use self::attempt::AuthorizedAttempt;
use self::caller_authorizers::CallerAuthorizers;
pub use self::caller_authorizers::{EXCHANGE_REFUSAL_AGE, MAX_CALLER_TOKENS};
pub use self::caller_token::{CallerToken, SubjectToken};
use self::clients::registered_redirect;
pub use self::discover::LoginDiscovery;
use self::dpop_key::DpopKey;
use self::driver::FlowDriver;
pub use self::error::{AuthorizationError, RefreshError};
pub use self::exchange::TokenExchangeSetup;
pub use self::logout::{EndedLogin, RevocationOutcome};
pub use self::options::{AuthorizationGrant, AuthorizationOptions, ClientStorage, CredentialSource};
pub use self::pending_login::PendingLogin;
use crate::challenge::ChallengeList;
use crate::dpop_nonce::supplied_nonce;
use crate::fetch::{FetchLimits, Fetcher};
use crate::flow::{AuthorizationFlow, DpopPolicy, FlowConfig, FlowOutcome, FlowTrigger};
use crate::pkce::FlowRandom;
use crate::scopes::ScopeSet;
use crate::step_up::AttemptLog;
use crate::token_store::{TokenGeneration, TokenKey, TokenStoreError};

/// Adds the credentials of a client to its requests to one MCP server, and obtains them when the server demands them.
pub struct Authorizer {
    options: AuthorizationOptions,
    server_url: String,
    server: Url,
    dialer: Dialer,
    current: RwLock<Option<Arc<ActiveTokens>>>,
    /// Set when the store was looked into.
    is_loaded: OnceCell<()>,
    /// Held while tokens are refreshed or obtained.
    flight: tokio::sync::Mutex<AuthorizationHistory>,
    /// Which operations were refused.
    attempts: Mutex<AttemptLog>,
    /// Whether there is one of them, which is cheaper to read.
    has_failures: AtomicBool,
    /// How many flows have ended.
    flows: AtomicU64,
    waiting_for_user: AtomicUsize,
    /// The last DPoP nonce of the MCP server.
    nonce: Mutex<Option<String>>,
    /// What a user has to authorize that this program could not reach.
    pending: Mutex<Option<PendingLogin>>,
    /// Those of the single tokens of a caller, if they are exchanged.
    callers: CallerAuthorizers,
}

/// What was tried so far.
#[derive(Default)]
struct AuthorizationHistory {
    /// All scopes that were requested.
    requested: ScopeSet,
    /// Why the last flow failed, if it did.
    last_failure: Option<AuthorizationError>,
    /// When it failed.
    failed_at: Option<Instant>,
}

impl Authorizer {
    /// Creates the authorizer of one server. Connections to authorization servers are opened by `dialer`, so that its
    /// proxies and certificate authorities apply to them too.
    pub fn new(options: AuthorizationOptions, server: &Url, dialer: Dialer) -> Self {
        let server = login::http_url(server);
        let history =
            AuthorizationHistory { requested: options.scopes.clone(), ..AuthorizationHistory::default() };
        Self {
            options,
            server_url: server.to_full_string(),
            server,
            dialer,
            current: RwLock::default(),
            is_loaded: OnceCell::new(),
            flight: tokio::sync::Mutex::new(history),
            attempts: Mutex::default(),
            has_failures: AtomicBool::new(false),
            flows: AtomicU64::new(0),
            waiting_for_user: AtomicUsize::new(0),
            nonce: Mutex::default(),
            pending: Mutex::default(),
            callers: CallerAuthorizers::default(),
        }
    }

    /// Begins a request. `operation` names what it does, such as `tools/call add`: attempts are counted for each.
    pub fn begin<'a>(&'a self, operation: &'a str) -> AuthorizedAttempt<'a> {
        AuthorizedAttempt::new(self, operation)
    }

    /// Reports whether requests are authorized with what the tokens of their callers are exchanged for, each with its own.
    pub fn exchanges_tokens(&self) -> bool {
        matches!(self.options.grant, AuthorizationGrant::TokenExchange(_))
    }

    /// Reports whether a flow waits for a user now, so that timeouts of requests are not due.
    pub fn is_waiting_for_user(&self) -> bool {
        self.waiting_for_user.load(Ordering::Relaxed) > 0
    }

    /// Returns the tokens in use, after those of the store were loaded once.
    async fn tokens(&self) -> Result<Option<Arc<ActiveTokens>>, AuthorizationError> {
        if let Some(active) = &*self.current.read() {
            return Ok(Some(active.clone()));
        }
        self.load().await?;
        Ok(self.current.read().clone())
    }

    async fn load(&self) -> Result<(), AuthorizationError> {
        self.is_loaded
            .get_or_try_init(async || {
                let mut history = self.flight.lock().await;
                self.adopt_stored(&mut history).await.map(drop)
            })
            .await
            .map(drop)
    }

    /// Runs a flow with a union of scopes, stores its tokens and uses them from now on.
    async fn authorize(
        &self,
        history: &mut AuthorizationHistory,
        trigger: FlowTrigger,
        scopes: ScopeSet,
    ) -> Result<(), AuthorizationError> {
        if let Some(refusal) = self.standing_refusal(history) {
            return Err(refusal);
        }
        let outcome = match self.run_flow(trigger.clone(), scopes.clone()).await {
            // A registration that was removed at the server is made again, once.
            Err(AuthorizationError::Flow(error))
                if error.is_invalid_client() && self.forget_clients(error.issuer()).await? =>
            {
                self.run_flow(trigger, scopes).await
            }
            outcome => outcome,
        };
        self.flows.fetch_add(1, Ordering::Relaxed);
        let adopted = match outcome {
            Ok((outcome, key)) => self.adopt(history, outcome, key).await,
            Err(error) => Err(error),
        };
        history.last_failure = adopted.as_ref().err().cloned();
        history.failed_at = history.last_failure.is_some().then(Instant::now);
        adopted
    }

    async fn run_flow(
        &self,
        trigger: FlowTrigger,
        scopes: ScopeSet,
    ) -> Result<(FlowOutcome, Option<DpopKey>), AuthorizationError> {
        let options = &self.options;
        if let AuthorizationGrant::TokenExchange(setup) = &options.grant {
            return Ok((self.exchange(setup, scopes).await?, None));
        }
        let registrations = options.store.load_clients().await?;
        let redirect = match &options.grant {
            AuthorizationGrant::AuthorizationCode(agent) => {
                let known = self.known_issuers().await?;
                let registered = registered_redirect(&registrations, &known);
                Some(agent.prepare_for_scopes(registered, &scopes).await?)
            }
            _ => None,
        };
        let key = if options.dpop == DpopPolicy::Off { None } else { Some(DpopKey::generate()?) };
        let redirect_uri = redirect.as_ref().map(|redirect| redirect.redirect_uri().to_owned());
        let mut config = FlowConfig::new(&self.server_url, redirect_uri.unwrap_or_default());
        config.grant = options.grant.to_flow().await?;
        config.issuer = self.bound_issuer().await?;
        config.preregistered = self.bound_clients().await?;
        config.client_document.clone_from(&options.client_document);
        config.registrations = registrations;
        config.client_name.clone_from(&options.client_name);
        config.previous_scopes = scopes;
        config.dpop = options.dpop;
        config.dpop_thumbprint = key.as_ref().map(DpopKey::thumbprint);
        let flow = AuthorizationFlow::new(config, trigger, flow_random()?)?;
        let fetcher = self.fetcher().await;
        let driver = FlowDriver {
            fetcher: &fetcher,
            dpop: key.as_ref(),
            client_key: options.client_key.as_deref(),
            redirect,
            waiting_for_user: &self.waiting_for_user,
        };
        Ok((driver.run(flow).await?, key))
    }

    /// Makes the fetcher for URLs that the server named.
    async fn fetcher(&self) -> Fetcher {
        let policy = match self.options.allows_private_addresses {
            true => AddressPolicy::ANY,
            false => self.dialer.policy_near(&self.server).await,
        };
        Fetcher::new(self.dialer.with_addresses(policy), FetchLimits::default())
    }

    /// Stores what a flow resulted in, and then uses it.
    async fn adopt(
        &self,
        history: &mut AuthorizationHistory,
        outcome: FlowOutcome,
        key: Option<DpopKey>,
    ) -> Result<(), AuthorizationError> {
        let FlowOutcome { tokens, client } = outcome;
        let store = &self.options.store;
        if let Some(client) = client.as_ref().and_then(|client| self.stored_form(client)) {
            store.save_client(&client).await?;
        }
        let entry = TokenKey {
            principal: self.options.principal.clone(),
            server_url: self.server_url.clone(),
            issuer: tokens.context.issuer.clone(),
            client_id: tokens.context.client_id.clone(),
            account: None,
        };
        history.requested = history.requested.union(&tokens.context.requested);
        let mut active = ActiveTokens::new(entry, tokens, TokenGeneration::ABSENT, key)?;
        active.client = client;
        active.stored = self.save(&active).await?;
        let before = self.current.write().replace(Arc::new(active));
        // Tokens of another client or issuer are not used any more.
        if let Some(before) = before.filter(|before| Some(&before.key) != self.current_key().as_ref()) {
            let _ = store.remove(&before.key, before.stored).await;
        }
        Ok(())
    }

    fn current_key(&self) -> Option<TokenKey> {
        self.current.read().as_ref().map(|active| active.key.clone())
    }

    /// Saves tokens over those of their entry, whatever generation it has: a new login replaces the old one.
    async fn save(&self, active: &ActiveTokens) -> Result<TokenGeneration, AuthorizationError> {
        let store = &self.options.store;
        loop {
            let replaced =
                store.load(&active.key).await?.map_or(TokenGeneration::ABSENT, |stored| stored.generation);
            match store.save(&active.key, &active.tokens, replaced).await {
                Err(TokenStoreError::Conflict) => {}
                saved => return Ok(saved?),
            }
        }
    }

    /// Keeps the nonce that a response of the MCP server supplies.
    fn record_nonce(&self, headers: &HeaderMap) {
        if let Some(nonce) = supplied_nonce(headers) {
            *self.nonce.lock() = Some(nonce.to_owned());
        }
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer")
            .field("server", &self.server)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Draws the random values of a flow.
fn flow_random() -> Result<FlowRandom, AuthorizationError> {
    let mut is_filled = true;
    let random = FlowRandom::draw(|bytes| is_filled &= getrandom::fill(bytes).is_ok());
    if is_filled { Ok(random) } else { Err(AuthorizationError::Signing) }
}

fn random_bytes() -> Result<[u8; 16], AuthorizationError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| AuthorizationError::Signing)?;
    Ok(bytes)
}

/// Returns the trigger of a refused request.
fn challenged(headers: &HeaderMap) -> FlowTrigger {
    FlowTrigger::Challenged(ChallengeList::from_headers(headers))
}

/// Returns the present time.
fn now() -> SystemTime {
    SystemTime::now()
}
