//! The authorizer of a server, as its configuration describes it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use trunkline_auth::authorizer::{
    AuthorizationError, AuthorizationGrant, AuthorizationOptions, Authorizer, CallerToken, CredentialSource,
    SubjectToken, TokenExchangeSetup,
};
use trunkline_auth::token_request::ID_TOKEN_TYPE;
use trunkline_auth::token_store::{MemoryTokenStore, SHARED_PRINCIPAL, TokenStore};
use trunkline_auth::user_agent::{UnattendedUserAgent, UserAgent};
use trunkline_client::Error;
use trunkline_config::{AuthKind, ConfigText, ServerAuth, ServerConfig, ServerLocation};
use trunkline_server::Caller;
use trunkline_transport::dial::Dialer;
use trunkline_transport::{Secret, Url};

use super::{Account, LoginAudience, UserLogins, apply_server_auth};

/// How often a connection is tried with a token after its exchange was refused. The authorizer decides whether the token is
/// exchanged again then.
const EXCHANGE_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Who shares the tokens for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenSharing {
    /// There are none.
    None,
    /// All users.
    Shared,
    /// Each user has their own.
    PerUser,
}

impl TokenSharing {
    /// Returns who shares the tokens for a server, if it demands any.
    pub(crate) fn of(config: &ServerConfig) -> Self {
        let ServerLocation::Endpoint(endpoint) = &config.location else { return Self::None };
        match config.auth.kind {
            // The operator has a token already.
            AuthKind::Auto if endpoint.headers.contains_key("authorization") => Self::None,
            AuthKind::None => Self::None,
            AuthKind::Auto | AuthKind::User | AuthKind::TokenExchange => Self::PerUser,
            AuthKind::ClientCredentials | AuthKind::WorkloadIdentity | AuthKind::Enterprise => Self::Shared,
        }
    }
}

/// Authorizes the requests of one user, or of all users, to one server.
#[derive(Debug)]
pub(crate) struct ServerAuthorizer {
    logins: Option<UserLogins>,
    /// The owner of the tokens that are used; `None` for a server that all users share.
    account: Option<Account>,
    /// The access token of the user, for a server that gets one in exchange for it.
    subject_token: SubjectToken,
    /// When a refused exchange of the same token is due again.
    retry_at: Mutex<Option<Instant>>,
    authorizer: OnceCell<Option<Arc<Authorizer>>>,
}

impl ServerAuthorizer {
    /// Creates the authorizer for the connections that a user has for itself, or those that all users share.
    pub(crate) fn new(logins: Option<UserLogins>, user: Option<Account>) -> Self {
        let is_local = |logins: &UserLogins| logins.audience() == LoginAudience::LocalUser;
        let local = || logins.as_ref().filter(|logins| is_local(logins)).map(|_| Account::local());
        let (subject_token, authorizer) = (SubjectToken::default(), OnceCell::new());
        let (account, retry_at) = (user.or_else(local), Mutex::default());
        Self { account, logins, subject_token, retry_at, authorizer }
    }

    pub(crate) fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    pub(crate) fn logins(&self) -> Option<&UserLogins> {
        self.logins.as_ref()
    }

    /// Uses the token of the user's latest request for the next exchange. Reports whether an exchange that was refused is
    /// due again: with another token than before, or after some time, since most refusals are not about the token.
    pub(crate) fn set_subject_token(&self, token: &CallerToken) -> bool {
        let now = Instant::now();
        let is_new = self.subject_token.set(token);
        let mut retry_at = self.retry_at.lock();
        let is_due = is_new || retry_at.is_none_or(|due| due <= now);
        if is_due {
            *retry_at = Some(now + EXCHANGE_RETRY_INTERVAL);
        }
        is_due
    }

    /// Returns the authorizer, if it was needed already.
    pub(crate) fn current(&self) -> Option<&Arc<Authorizer>> {
        self.authorizer.get()?.as_ref()
    }

    /// Returns the authorizer of the server; `None` if it is reached without one.
    ///
    /// # Errors
    /// A file of the configuration cannot be read.
    pub(crate) async fn get(&self, config: &ServerConfig) -> Result<Option<Arc<Authorizer>>, Error> {
        let creating = || async {
            let is_exchange = config.auth.kind == AuthKind::TokenExchange;
            let (principal, grant) = match (TokenSharing::of(config), &self.account) {
                // Without a user there is no token to exchange, so that the server is not even tried.
                (TokenSharing::PerUser, None) if is_exchange => {
                    return Err(Error::Authorization(AuthorizationError::NoSubjectToken));
                }
                (TokenSharing::PerUser, Some(account)) if is_exchange => {
                    (account.to_string(), self.exchange_grant(&config.auth)?)
                }
                (TokenSharing::None, _) | (TokenSharing::PerUser, None) => return Ok(None),
                (TokenSharing::PerUser, Some(account)) => {
                    let advice = format!("log in to server `{}` first", config.name);
                    let agent = Arc::new(UnattendedUserAgent::new(advice));
                    (account.to_string(), AuthorizationGrant::AuthorizationCode(agent))
                }
                (TokenSharing::Shared, _) => (SHARED_PRINCIPAL.to_owned(), shared_grant(&config.auth)?),
            };
            let options = self.options(config, principal, grant).await?;
            Ok(Some(Arc::new(Authorizer::new(options, &server_url(config)?, Dialer::default()))))
        };
        self.authorizer.get_or_try_init(creating).await.cloned()
    }

    /// Obtains a token by a user, and uses it from now on.
    ///
    /// # Errors
    /// A step of the authorization failed.
    pub(crate) async fn log_in(
        &self,
        config: &ServerConfig,
        agent: Arc<dyn UserAgent>,
    ) -> Result<(), LoginError> {
        let (Some(current), Some(account)) = (self.get(config).await?, &self.account) else {
            return Err(LoginError::Setup("this server has no users that log in".to_owned()));
        };
        let grant = AuthorizationGrant::AuthorizationCode(agent);
        let options = self.options(config, account.to_string(), grant).await?;
        // Requests are refused meanwhile, and do not wait for the user.
        let login = Authorizer::new(options, &server_url(config)?, Dialer::default());
        match current.pending() {
            Some(pending) => login.log_in_for(pending).await?,
            None => login.log_in().await?,
        }
        current.reload().await?;
        Ok(())
    }

    async fn options(
        &self,
        config: &ServerConfig,
        principal: String,
        grant: AuthorizationGrant,
    ) -> Result<AuthorizationOptions, Error> {
        let mut options = AuthorizationOptions::with_grant(grant).with_store(self.store());
        options.principal = principal;
        let auth = config.auth.clone();
        // It may read a file.
        let applying = move || apply_server_auth(&mut options, &auth).map(|()| options);
        let applied = tokio::task::spawn_blocking(applying).await;
        applied.unwrap_or_else(|error| Err(Error::Invalid(error.to_string())))
    }

    /// Returns the grant of a server that gets tokens in exchange for those of the user.
    fn exchange_grant(&self, auth: &ServerAuth) -> Result<AuthorizationGrant, Error> {
        let token_endpoint = auth.token_endpoint.as_ref().ok_or_else(incomplete_auth)?.expose().to_owned();
        Ok(AuthorizationGrant::TokenExchange(TokenExchangeSetup {
            token_endpoint,
            audience: auth.audience.as_ref().map(|audience| audience.expose().to_owned()),
            subject_token: self.subject_token.clone(),
        }))
    }

    fn store(&self) -> Arc<dyn TokenStore> {
        match &self.logins {
            Some(logins) => logins.store().clone(),
            None => Arc::new(MemoryTokenStore::default()),
        }
    }
}

/// Returns the access token with which a caller has made its request, if it can be exchanged.
pub(crate) fn caller_token(caller: &Caller) -> Option<CallerToken> {
    let grant = caller.grant.as_ref()?;
    Some(CallerToken::new(grant.access_token.clone()?, grant.expires_at))
}

/// Why a login failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("{0}")]
    Setup(String),
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
}

impl From<Error> for LoginError {
    fn from(error: Error) -> Self {
        Self::Setup(error.to_string())
    }
}

fn incomplete_auth() -> Error {
    Error::Invalid("its `auth` is not complete".to_owned())
}

/// Returns the grant of credentials that all users share.
fn shared_grant(auth: &ServerAuth) -> Result<AuthorizationGrant, Error> {
    let token_file = || {
        let file = auth.token_file.as_ref().ok_or_else(incomplete_auth)?;
        Ok::<_, Error>(CredentialSource::File(auth.path_of(file)))
    };
    let exposed = |text: &Option<ConfigText>| text.as_ref().map(|text| text.expose().to_owned());
    Ok(match auth.kind {
        AuthKind::WorkloadIdentity => AuthorizationGrant::WorkloadIdentity(token_file()?),
        AuthKind::Enterprise => AuthorizationGrant::EnterpriseManaged {
            token_endpoint: exposed(&auth.idp_token_endpoint).ok_or_else(incomplete_auth)?,
            client_id: exposed(&auth.idp_client_id).ok_or_else(incomplete_auth)?,
            client_secret: auth.idp_client_secret.as_ref().map(secret_of),
            subject_token: token_file()?,
            subject_token_type: ID_TOKEN_TYPE.to_owned(),
        },
        AuthKind::ClientCredentials => AuthorizationGrant::ClientCredentials,
        AuthKind::Auto | AuthKind::None | AuthKind::User | AuthKind::TokenExchange => {
            return Err(incomplete_auth());
        }
    })
}

pub(super) fn secret_of(text: &ConfigText) -> Secret {
    Secret::new(text.expose())
}

/// Returns the URL by which a server is known to authorization, which has no WebSocket schemes.
///
/// # Errors
/// It is a program, or the URL cannot be used.
pub fn server_url(config: &ServerConfig) -> Result<Url, Error> {
    let ServerLocation::Endpoint(endpoint) = &config.location else {
        return Err(Error::Invalid("a program needs no authorization".to_owned()));
    };
    let url = endpoint.url.expose();
    let over_http = url.strip_prefix("ws").map(|rest| format!("http{rest}"));
    let parsed = over_http.as_deref().unwrap_or(url).parse();
    parsed.map_err(|error| Error::Invalid(format!("the address is not usable: {error}")))
}
