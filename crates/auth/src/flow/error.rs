use std::fmt;

use http::StatusCode;

use crate::callback::CallbackError;
use crate::endpoint_url::EndpointError;
use crate::error_source::ErrorSource;
use crate::json_document::DocumentError;
use crate::oauth_error::OauthError;
use crate::registration::RegistrationError;
use crate::server_metadata::MetadataError;
use crate::token_response::TokenResponseError;

/// A step of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FlowStep {
    /// Finding the protected resource metadata.
    ResourceMetadata,
    /// Finding the authorization server metadata.
    ServerMetadata,
    /// Choosing or registering a client.
    Registration,
    /// Authorization by the user.
    Authorization,
    /// The token exchange at the user's identity provider.
    IdentityProvider,
    /// Signing an assertion.
    Assertion,
    /// The token request.
    Token,
    /// The flow is over.
    Finished,
}

impl fmt::Display for FlowStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ResourceMetadata => "protected resource metadata",
            Self::ServerMetadata => "authorization server metadata",
            Self::Registration => "client registration",
            Self::Authorization => "authorization by the user",
            Self::IdentityProvider => "token exchange at the identity provider",
            Self::Assertion => "client assertion",
            Self::Token => "token request",
            Self::Finished => "finished flow",
        })
    }
}

/// The reason why a step failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowFailure {
    /// The URL is refused.
    #[error("the URL is refused: {0}")]
    Endpoint(#[from] EndpointError),
    /// No response came.
    #[error("the request failed: {}", one_line(.0))]
    Fetch(#[source] ErrorSource),
    /// The response has an unexpected status.
    #[error("the response has the status {0}")]
    Status(StatusCode),
    /// The protected resource metadata are unusable.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The protected resource metadata are of another resource.
    #[error("the metadata are of the resource `{found}` instead of `{dialled}`")]
    ResourceMismatch {
        /// The URL that was dialled.
        dialled: String,
        /// The resource in the document.
        found: String,
    },
    /// The resource does not use the issuer that the operator configured, or that tokens came from so far.
    #[error("the server does not list the issuer `{0}`, the only one that is accepted")]
    IssuerNotListed(String),
    /// The authorization server metadata are unusable.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The authorization server has no way to register, and no client is configured for it.
    #[error(
        "no client is registered at `{0}`, and it has no registration that can be used; configure a client"
    )]
    NoClient(String),
    /// The registration failed.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// The authorization response was rejected.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// No token was issued.
    #[error(transparent)]
    Token(#[from] TokenResponseError),
    /// The token is not bound to the key, as the configuration requires.
    #[error("the authorization server issued a token without DPoP")]
    TokenNotBound,
    /// The driver reported something that the flow does not wait for.
    #[error("the flow does not wait for this event")]
    UnexpectedEvent,
}

/// Returns the text of a cause, which may quote a peer, without control characters and bounded.
fn one_line(cause: &ErrorSource) -> String {
    cause.to_string().chars().filter(|c| !c.is_control()).take(512).collect()
}

impl FlowFailure {
    /// Orders failures of metadata candidates: refused documents first, missing ones last.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Metadata(MetadataError::Document(_)) | Self::Document(_) => 2,
            Self::Metadata(_) => 3,
            Self::Fetch(_) | Self::Endpoint(_) => 1,
            _ => 0,
        }
    }
}

/// A metadata URL that was tried without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataAttempt {
    /// The URL, without its query.
    pub url: String,
    /// Why they are not used.
    pub failure: FlowFailure,
}

/// A failed authorization flow. It never has a token, code or secret of the client in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowError {
    pub(super) step: FlowStep,
    pub(super) url: Option<Box<str>>,
    pub(super) failure: FlowFailure,
    pub(super) attempts: Vec<MetadataAttempt>,
    pub(super) issuer: Option<Box<str>>,
    pub(super) has_metadata: bool,
}

impl FlowError {
    /// Returns the step that failed.
    pub fn step(&self) -> FlowStep {
        self.step
    }

    /// Returns the URL at which it failed, without its query.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Returns the reason.
    pub fn failure(&self) -> &FlowFailure {
        &self.failure
    }

    /// Returns the issuer of the authorization server, if it was found before the failure.
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Reports whether the server has metadata of any kind. One without them may not use OAuth at all: then its endpoints
    /// were assumed, as revision 2025-03-26 prescribes.
    pub fn has_metadata(&self) -> bool {
        self.has_metadata
    }

    /// Returns the metadata URLs that were tried without success.
    pub fn attempts(&self) -> &[MetadataAttempt] {
        &self.attempts
    }

    /// Returns the error of the authorization server, if it sent one.
    pub fn oauth_error(&self) -> Option<&OauthError> {
        match &self.failure {
            FlowFailure::Registration(RegistrationError::Refused(error))
            | FlowFailure::Callback(CallbackError::Refused(error))
            | FlowFailure::Token(TokenResponseError::Refused(error)) => Some(error),
            _ => None,
        }
    }

    /// Reports whether the server does not know the client, so that a stored registration has to be removed.
    pub fn is_invalid_client(&self) -> bool {
        matches!(&self.failure, FlowFailure::Token(error) if error.is_invalid_client())
    }
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.step)?;
        self.url.iter().try_for_each(|url| write!(f, " at {url}"))?;
        write!(f, ": {}", self.failure)?;
        if self.step <= FlowStep::Registration {
            for attempt in self.attempts.iter().filter(|attempt| Some(attempt.url.as_str()) != self.url()) {
                write!(f, "; {}: {}", attempt.url, attempt.failure)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for FlowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.failure)
    }
}
