use std::time::SystemTime;

use bytes::Bytes;
use http::Response;
use trunkline_http1::Url;
use trunkline_transport::Secret;

use super::action::{FlowAction, FlowOutcome};
use super::config::{FlowConfig, FlowTrigger};
use super::error::{FlowError, FlowFailure, FlowStep, MetadataAttempt};
use super::search::{MetadataCandidate, MetadataSearch};
use crate::callback::{AuthorizationCallback, CallbackError, PendingAuthorization};
use crate::discovery::resource_metadata_urls;
use crate::dpop_nonce::NonceState;
use crate::endpoint_url::{check_endpoint, redacted};
use crate::error_source::ErrorSource;
use crate::pkce::FlowRandom;
use crate::registration::ClientRegistration;
use crate::scopes::ScopeSet;
use crate::server_metadata::ServerMetadata;
use crate::token_request::{ClientAuthentication, TokenGrant};

/// The authorization of a client at one MCP server, from a challenge to a token.
///
/// See the [module](crate::flow) for how it is driven.
#[derive(Debug)]
pub struct AuthorizationFlow {
    pub(super) config: FlowConfig,
    pub(super) trigger: FlowTrigger,
    pub(super) random: FlowRandom,
    pub(super) server_url: Url,
    pub(super) facts: FlowFacts,
    pub(super) state: FlowState,
}

/// The state that an event leads to.
pub(super) type NextState = Result<FlowState, FlowFailure>;

/// What the flow found out so far.
#[derive(Debug, Default)]
pub(super) struct FlowFacts {
    /// The value of the parameter `resource`.
    pub(super) resource: Option<String>,
    pub(super) resource_scopes: Option<ScopeSet>,
    pub(super) is_dpop_resource: bool,
    pub(super) server: ServerMetadata,
    pub(super) client: Option<ClientRegistration>,
    pub(super) scopes: ScopeSet,
    pub(super) attempts: Vec<MetadataAttempt>,
    /// Whether any metadata were found, even if they are unusable.
    pub(super) has_metadata: bool,
    pub(super) nonce: NonceState,
}

/// What a flow has found out, to show it to a user.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FlowDiscovery<'a> {
    /// The resource, as its metadata name it.
    pub resource: Option<&'a str>,
    /// The scopes of the resource.
    pub resource_scopes: Option<&'a ScopeSet>,
    /// The authorization server.
    pub server: Option<&'a ServerMetadata>,
    /// The scopes that are requested.
    pub scopes: &'a ScopeSet,
    /// Whether the server has metadata of any kind.
    pub has_metadata: bool,
}

/// What the flow waits for.
#[derive(Clone, Debug)]
pub(super) enum FlowState {
    ResourceMetadata { current: MetadataCandidate, search: MetadataSearch },
    ServerMetadata { current: MetadataCandidate, search: MetadataSearch },
    Registration { endpoint: String },
    Page { endpoint: String },
    IdentityProvider,
    Assertion { grant: TokenGrant },
    Token { grant: TokenGrant, client: ClientAuthentication },
    Done(Box<FlowOutcome>),
    Failed(Box<FlowError>),
}

impl AuthorizationFlow {
    /// Starts a flow.
    ///
    /// # Errors
    /// The URL of the server is unusable.
    pub fn new(config: FlowConfig, trigger: FlowTrigger, random: FlowRandom) -> Result<Self, FlowError> {
        let server_url =
            check_endpoint(&config.server_url, config.plain_http).map_err(|error| FlowError {
                step: FlowStep::ResourceMetadata,
                url: Some(redacted(&config.server_url).into()),
                failure: error.into(),
                attempts: Vec::new(),
                issuer: None,
                has_metadata: false,
            })?;
        let challenged = trigger.challenges().and_then(|list| list.resource_metadata());
        let urls = resource_metadata_urls(challenged, &server_url);
        let mut search = MetadataSearch::for_resource(urls, config.plain_http);
        let mut facts = FlowFacts {
            is_dpop_resource: trigger.challenges().is_some_and(|list| list.dpop().is_some()),
            ..FlowFacts::default()
        };
        let first = search.next(&mut facts.attempts);
        // The well-known URLs have the scheme of the server, which was checked, so there is one at least.
        let state = match first {
            Some(current) => FlowState::ResourceMetadata { current, search },
            None => FlowState::Failed(Box::new(FlowError {
                step: FlowStep::ResourceMetadata,
                url: None,
                failure: FlowFailure::UnexpectedEvent,
                attempts: facts.attempts.clone(),
                issuer: None,
                has_metadata: false,
            })),
        };
        Ok(Self { config, trigger, random, server_url, facts, state })
    }

    /// Returns what is known so far.
    pub fn discovered(&self) -> FlowDiscovery<'_> {
        let FlowFacts { resource, resource_scopes, server, scopes, .. } = &self.facts;
        FlowDiscovery {
            resource: resource.as_deref(),
            resource_scopes: resource_scopes.as_ref(),
            server: (!server.issuer.is_empty()).then_some(server),
            scopes,
            has_metadata: self.facts.has_metadata,
        }
    }

    /// Returns what to do next. Without an event in between it is the same again.
    ///
    /// # Errors
    /// The flow has failed.
    pub fn next(&self) -> Result<FlowAction, FlowError> {
        match &self.state {
            FlowState::ResourceMetadata { current, .. } | FlowState::ServerMetadata { current, .. } => {
                self.metadata_action(current)
            }
            FlowState::Registration { endpoint } => self.registration_action(endpoint),
            FlowState::Page { endpoint } => Ok(FlowAction::OpenPage(Box::new(self.page(endpoint)))),
            FlowState::IdentityProvider => self.identity_provider_action(),
            FlowState::Assertion { .. } => Ok(FlowAction::NeedAssertion(self.assertion_request())),
            FlowState::Token { grant, client } => self.token_action(grant, client),
            FlowState::Done(outcome) => Ok(FlowAction::Done(outcome.clone())),
            FlowState::Failed(error) => Err((**error).clone()),
        }
    }

    /// Reports the response to a [`FlowAction::Fetch`].
    ///
    /// # Errors
    /// The flow has failed, and stays so.
    pub fn on_response(&mut self, response: &Response<Bytes>, now: SystemTime) -> Result<(), FlowError> {
        let next = match self.state.clone() {
            FlowState::ResourceMetadata { current, search } => {
                self.on_resource_metadata(&current, search, response, now)
            }
            FlowState::ServerMetadata { current, search } => {
                self.on_server_metadata(&current, search, response, now)
            }
            FlowState::Registration { .. } => self.on_registration(response),
            FlowState::IdentityProvider => self.on_identity_provider(response),
            FlowState::Token { grant, client } => self.on_token(grant, client, response, now),
            _ => return Err(self.error(FlowFailure::UnexpectedEvent)),
        };
        self.enter(next)
    }

    /// Reports that the request of a [`FlowAction::Fetch`] got no response. For metadata that is like 404.
    ///
    /// # Errors
    /// The flow has failed, and stays so.
    pub fn on_fetch_failed(
        &mut self,
        cause: impl Into<ErrorSource>,
        now: SystemTime,
    ) -> Result<(), FlowError> {
        let failure = FlowFailure::Fetch(cause.into());
        let next = match self.state.clone() {
            FlowState::ResourceMetadata { current, search } => {
                self.no_resource_metadata(&current, search, failure, now)
            }
            FlowState::ServerMetadata { current, search } => {
                self.no_server_metadata(&current, search, failure, now)
            }
            FlowState::Registration { .. } | FlowState::IdentityProvider | FlowState::Token { .. } => {
                Err(failure)
            }
            _ => return Err(self.error(FlowFailure::UnexpectedEvent)),
        };
        self.enter(next)
    }

    /// Reports the authorization response that came to the redirect URI.
    ///
    /// # Errors
    /// The response was rejected. The flow stays failed, unless the response is one to another request: then it goes on
    /// to wait, since any page may send requests to a loopback port.
    pub fn on_callback(&mut self, callback: &AuthorizationCallback) -> Result<(), FlowError> {
        let FlowState::Page { .. } = self.state else { return Err(self.error(FlowFailure::UnexpectedEvent)) };
        let next = match callback.validate(&self.pending()) {
            Err(CallbackError::StateMismatch) => return Err(self.error(CallbackError::StateMismatch.into())),
            Err(error) => Err(error.into()),
            Ok(code) => Ok(self.request_token(TokenGrant::AuthorizationCode {
                code,
                redirect_uri: self.config.redirect_uri.clone(),
                verifier: self.random.verifier.secret().clone(),
            })),
        };
        self.enter(next)
    }

    /// Reports the signed assertion of a [`FlowAction::NeedAssertion`].
    ///
    /// # Errors
    /// The flow does not wait for one.
    pub fn on_assertion(&mut self, assertion: Secret) -> Result<(), FlowError> {
        let FlowState::Assertion { grant } = &self.state else {
            return Err(self.error(FlowFailure::UnexpectedEvent));
        };
        let client_id = self.client_id().to_owned();
        let client = ClientAuthentication::Assertion { client_id, assertion };
        self.state = FlowState::Token { grant: grant.clone(), client };
        Ok(())
    }

    /// Returns what an authorization response has to match, for a listener that serves several flows.
    pub fn pending(&self) -> PendingAuthorization {
        PendingAuthorization {
            state: self.random.state.clone(),
            issuer: self.facts.server.issuer.clone(),
            is_issuer_in_response: self.facts.server.is_issuer_in_response,
        }
    }

    /// Returns the step that the flow is at.
    pub fn step(&self) -> FlowStep {
        match &self.state {
            FlowState::ResourceMetadata { .. } => FlowStep::ResourceMetadata,
            FlowState::ServerMetadata { .. } => FlowStep::ServerMetadata,
            FlowState::Registration { .. } => FlowStep::Registration,
            FlowState::Page { .. } => FlowStep::Authorization,
            FlowState::IdentityProvider => FlowStep::IdentityProvider,
            FlowState::Assertion { .. } => FlowStep::Assertion,
            FlowState::Token { .. } => FlowStep::Token,
            FlowState::Done(_) => FlowStep::Finished,
            FlowState::Failed(error) => error.step,
        }
    }

    fn enter(&mut self, next: NextState) -> Result<(), FlowError> {
        match next {
            Ok(state) => {
                self.state = state;
                Ok(())
            }
            Err(failure) => {
                // Of several candidates, the one that the failure is of is not always the last.
                let attempt = self.facts.attempts.iter().find(|attempt| attempt.failure == failure);
                let url = attempt.map(|attempt| attempt.url.clone());
                let mut error = self.error(failure);
                if matches!(error.failure, FlowFailure::NoClient(_)) {
                    error.step = FlowStep::Registration;
                }
                error.url = url.map(Into::into).or(error.url);
                self.state = FlowState::Failed(Box::new(error.clone()));
                Err(error)
            }
        }
    }

    pub(super) fn error(&self, failure: FlowFailure) -> FlowError {
        let url = match &self.state {
            FlowState::ResourceMetadata { current, .. } | FlowState::ServerMetadata { current, .. } => {
                Some(current.url.as_str())
            }
            FlowState::Registration { endpoint } | FlowState::Page { endpoint } => Some(endpoint.as_str()),
            FlowState::IdentityProvider => self.enterprise().map(|setup| setup.token_endpoint.as_str()),
            FlowState::Token { .. } => Some(self.facts.server.token_endpoint.as_str()),
            FlowState::Assertion { .. } | FlowState::Done(_) | FlowState::Failed(_) => None,
        };
        FlowError {
            step: self.step(),
            url: url.map(|url| redacted(url).into()),
            failure,
            attempts: self.facts.attempts.clone(),
            has_metadata: self.facts.has_metadata,
            issuer: Some(self.facts.server.issuer.as_str())
                .filter(|issuer| !issuer.is_empty())
                .map(Into::into),
        }
    }
}
