//! The steps from a known authorization server to a token.

use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, Response};

use super::action::{AssertionRequest, FetchPurpose, FlowAction, FlowFetch, FlowOutcome, ProofRequest};
use super::config::{DpopPolicy, EnterpriseSetup, FlowGrant};
use super::error::{FlowError, FlowFailure};
use super::machine::{AuthorizationFlow, FlowState, NextState};
use crate::authorization_request::{AuthorizationPage, AuthorizationRequest};
use crate::dpop_nonce::NonceDecision;
use crate::registration::{ClientCredential, read_registration, registration_request};
use crate::scopes::ScopeSet;
use crate::token_request::{
    ClientAuthentication, ID_JAG_TOKEN_TYPE, TokenAuthMethod, TokenGrant, TokenRequest,
};
use crate::token_response::{TokenResponseError, read_token_response};
use crate::token_set::{AccessTokenKind, TokenContext, TokenSet};

/// Registration and authorization by the user.
impl AuthorizationFlow {
    pub(super) fn registration_action(&self, endpoint: &str) -> Result<FlowAction, FlowError> {
        let (name, redirect_uri) = (&self.config.client_name, &self.config.redirect_uri);
        let request = registration_request(&self.facts.server, endpoint, name, redirect_uri);
        self.fetch(request, FetchPurpose::Registration, None)
    }

    pub(super) fn on_registration(&mut self, response: &Response<Bytes>) -> NextState {
        self.facts.client = Some(read_registration(response, &self.facts.server, &self.config.redirect_uri)?);
        self.use_grant()
    }

    pub(super) fn page(&self, endpoint: &str) -> AuthorizationPage {
        let thumbprint = self.config.dpop_thumbprint.as_deref().filter(|_| self.uses_dpop());
        let request = AuthorizationRequest {
            endpoint,
            client_id: self.client_id(),
            redirect_uri: &self.config.redirect_uri,
            resource: self.facts.resource.as_deref(),
            scopes: &self.facts.scopes,
            dpop_thumbprint: thumbprint,
            random: &self.random,
        };
        AuthorizationPage {
            url: request.url(),
            redirect_uri: self.config.redirect_uri.clone(),
            issuer: self.facts.server.issuer.clone(),
            scopes: self.facts.scopes.clone(),
        }
    }

    pub(super) fn client_id(&self) -> &str {
        self.facts.client.as_ref().map_or("", |client| client.client_id.as_str())
    }
}

/// Tokens.
impl AuthorizationFlow {
    pub(super) fn enterprise(&self) -> Option<&EnterpriseSetup> {
        match &self.config.grant {
            FlowGrant::EnterpriseManaged(setup) => Some(setup),
            _ => None,
        }
    }

    pub(super) fn identity_provider_action(&self) -> Result<FlowAction, FlowError> {
        let Some(setup) = self.enterprise() else { return Err(self.error(FlowFailure::UnexpectedEvent)) };
        let grant = TokenGrant::TokenExchange {
            subject_token: setup.subject_token.clone(),
            subject_token_type: setup.subject_token_type.clone(),
            requested_token_type: ID_JAG_TOKEN_TYPE.to_owned(),
            audience: Some(self.facts.server.issuer.clone()),
        };
        let credential =
            setup.client_secret.clone().map_or(ClientCredential::Public, ClientCredential::Secret);
        let method = TokenAuthMethod::ClientSecretPost;
        let request = TokenRequest {
            endpoint: &setup.token_endpoint,
            grant: &grant,
            client: &ClientAuthentication::new(&setup.client_id, &credential, method),
            resource: self.facts.resource.as_deref(),
            scopes: &self.facts.scopes,
        };
        self.fetch(request.build(), FetchPurpose::IdentityProvider, None)
    }

    pub(super) fn on_identity_provider(&mut self, response: &Response<Bytes>) -> NextState {
        let response = read_token_response(response)?;
        let kind = response.issued_token_type.filter(|kind| kind != ID_JAG_TOKEN_TYPE);
        if let Some(kind) = kind {
            return Err(TokenResponseError::TokenType(
                kind.chars().filter(|c| !c.is_control()).take(128).collect(),
            )
            .into());
        }
        Ok(self.request_token(TokenGrant::JwtBearer(response.access_token)))
    }

    pub(super) fn assertion_request(&self) -> AssertionRequest {
        AssertionRequest {
            client_id: self.client_id().to_owned(),
            audience: self.facts.server.issuer.clone(),
            algorithms: self.facts.server.token_auth_algorithms.clone(),
        }
    }

    /// Returns the state in which a token is requested; a client with a private key needs an assertion before.
    pub(super) fn request_token(&self, grant: TokenGrant) -> FlowState {
        let client = match &self.facts.client {
            None => ClientAuthentication::Anonymous,
            Some(client) if client.auth_method == TokenAuthMethod::PrivateKeyJwt => {
                return FlowState::Assertion { grant };
            }
            Some(client) => {
                ClientAuthentication::new(&client.client_id, &client.credential, client.auth_method)
            }
        };
        FlowState::Token { grant, client }
    }

    pub(super) fn token_action(
        &self,
        grant: &TokenGrant,
        client: &ClientAuthentication,
    ) -> Result<FlowAction, FlowError> {
        // RFC 6749 §4.1.3: the scopes of a code were requested with it.
        let has_scopes = !matches!(grant, TokenGrant::AuthorizationCode { .. });
        let none = ScopeSet::default();
        let request = TokenRequest {
            endpoint: &self.facts.server.token_endpoint,
            grant,
            client,
            resource: self.facts.resource.as_deref(),
            scopes: if has_scopes { &self.facts.scopes } else { &none },
        };
        let nonce = self.facts.nonce.current().map(str::to_owned);
        let proof = self.uses_dpop().then_some(ProofRequest { nonce });
        self.fetch(request.build(), FetchPurpose::Token, proof)
    }

    pub(super) fn on_token(
        &mut self,
        grant: TokenGrant,
        client: ClientAuthentication,
        response: &Response<Bytes>,
        now: SystemTime,
    ) -> NextState {
        if self.uses_dpop() && self.facts.nonce.on_response(response) == NonceDecision::Repeat {
            // An assertion is accepted once, so the repeated request needs another.
            return Ok(match client {
                ClientAuthentication::Assertion { .. } => FlowState::Assertion { grant },
                client => FlowState::Token { grant, client },
            });
        }
        let binding = TokenContext {
            issuer: self.facts.server.issuer.clone(),
            token_endpoint: self.facts.server.token_endpoint.clone(),
            revocation_endpoint: self.facts.server.revocation_endpoint.clone(),
            client_id: self.client_id().to_owned(),
            resource: self.facts.resource.clone(),
            requested: self.facts.scopes.clone(),
        };
        let tokens = TokenSet::new(read_token_response(response)?, binding, now)?;
        match tokens.kind {
            AccessTokenKind::Bearer if self.config.dpop == DpopPolicy::Required => {
                return Err(FlowFailure::TokenNotBound);
            }
            // No key was sent that it could be bound to.
            AccessTokenKind::Dpop if !self.uses_dpop() => {
                return Err(TokenResponseError::TokenType("DPoP".to_owned()).into());
            }
            AccessTokenKind::Bearer | AccessTokenKind::Dpop => {}
        }
        Ok(FlowState::Done(Box::new(FlowOutcome { tokens, client: self.facts.client.clone() })))
    }

    fn uses_dpop(&self) -> bool {
        match self.config.dpop {
            DpopPolicy::Off => false,
            DpopPolicy::IfAnnounced => {
                self.facts.is_dpop_resource && !self.facts.server.dpop_signing_algorithms.is_empty()
            }
            DpopPolicy::Required => true,
        }
    }

    pub(super) fn fetch(
        &self,
        request: Result<Request<Bytes>, http::Error>,
        purpose: FetchPurpose,
        proof: Option<ProofRequest>,
    ) -> Result<FlowAction, FlowError> {
        match request {
            Ok(request) => Ok(FlowAction::Fetch(Box::new(FlowFetch { request, purpose, proof }))),
            Err(error) => Err(self.error(FlowFailure::Fetch(error.into()))),
        }
    }
}
