use std::sync::Arc;

use crate::fetch::FetchError;
use crate::flow::{FlowError, FlowFailure};
use crate::oauth_error::OauthError;
use crate::token_response::TokenResponseError;
use crate::token_store::TokenStoreError;
use crate::user_agent::UserAgentError;

/// Why a request could not be authorized. It contains no token, code or secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationError {
    /// A step of the flow failed.
    #[error("authorization: {0}")]
    Flow(#[source] Box<FlowError>),
    /// The user could not be sent to the authorization page.
    #[error("authorization: {0}")]
    UserAgent(#[source] Arc<UserAgentError>),
    /// The user did not complete the login in time.
    #[error("authorization: the login was not completed within 10 minutes")]
    UserTimedOut,
    /// The server refuses the tokens that it gets, or demands more scopes each time.
    #[error("authorization: the server refused {attempts} new tokens in a row{}", refused_scopes(.scopes))]
    Refused {
        /// How often a new token was obtained.
        attempts: u32,
        /// The scopes that it demands.
        scopes: Option<String>,
    },
    /// The authorization server demands a signed assertion, and the client has no key.
    #[error(
        "authorization: the authorization server demands `private_key_jwt`, and no private key is configured"
    )]
    NoClientKey,
    /// The client that tokens were issued to has a secret, which this program does not know.
    #[error(
        "authorization: the client `{client_id}` has a secret, which is not stored but in the configuration of the \
         server; use the name of the server, or log in again"
    )]
    NoClientSecret {
        /// The client.
        client_id: String,
    },
    /// A file with a credential cannot be read.
    #[error("authorization: {path} cannot be read: {source}")]
    CredentialFile {
        /// The file.
        path: String,
        /// The failure.
        source: Arc<std::io::Error>,
    },
    /// The token could not be refreshed, which may pass.
    #[error("authorization: the token cannot be refreshed at {url}: {source}")]
    Refresh {
        /// The token endpoint, without its query.
        url: String,
        /// What happened.
        source: Arc<RefreshError>,
    },
    /// There is no access token of the caller that could be exchanged.
    #[error("authorization: there is no access token of the caller to exchange")]
    NoSubjectToken,
    /// The access token of the caller has expired, so that it is not exchanged any more.
    #[error("authorization: the access token of the caller has expired; repeat the request with a new one")]
    SubjectTokenExpired,
    /// The token of the caller could not be exchanged.
    #[error("authorization: the token exchange failed at {url}: {failure}")]
    Exchange {
        /// The token endpoint, without its query.
        url: String,
        /// What happened.
        #[source]
        failure: Box<FlowFailure>,
    },
    /// The token store failed.
    #[error("authorization: {0}")]
    Store(#[from] TokenStoreError),
    /// No signature or random number could be made.
    #[error("authorization: the system has no random numbers for a signature")]
    Signing,
}

/// Why a token could not be refreshed, which may pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefreshError {
    /// There is no refresh token.
    #[error("there is no refresh token")]
    NoRefreshToken,
    /// The token endpoint is not a usable URL.
    #[error("{0}")]
    Request(#[from] http::Error),
    /// No response came.
    #[error("{0}")]
    Fetch(#[from] FetchError),
    /// The response has no tokens.
    #[error("{0}")]
    Response(#[from] TokenResponseError),
    /// The server demands another nonce for each request.
    #[error("the server demands one DPoP nonce after the other")]
    NonceLoop,
    /// The task of the refresh was ended.
    #[error("{0}")]
    Aborted(#[from] tokio::task::JoinError),
}

impl AuthorizationError {
    /// Returns the error of the authorization server, if it sent one.
    pub fn oauth_error(&self) -> Option<&OauthError> {
        match self {
            Self::Flow(error) => error.oauth_error(),
            Self::Exchange { failure, .. } => match &**failure {
                FlowFailure::Token(TokenResponseError::Refused(error)) => Some(error),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reports whether a user has to log in, which this program could not arrange.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::UserAgent(error) if matches!(**error, UserAgentError::Unavailable(_)))
    }
}

impl From<FlowError> for AuthorizationError {
    fn from(error: FlowError) -> Self {
        Self::Flow(Box::new(error))
    }
}

impl From<UserAgentError> for AuthorizationError {
    fn from(error: UserAgentError) -> Self {
        Self::UserAgent(Arc::new(error))
    }
}

fn refused_scopes(scopes: &Option<String>) -> String {
    scopes.as_ref().map(|scopes| format!("; it demands the scopes `{scopes}`")).unwrap_or_default()
}
