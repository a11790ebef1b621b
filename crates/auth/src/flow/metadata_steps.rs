//! The steps that find the authorization server, and choose the scopes and the client.

use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};

use super::action::{FetchPurpose, FlowAction};
use super::config::FlowGrant;
use super::error::{FlowError, FlowFailure, MetadataAttempt};
use super::machine::{AuthorizationFlow, FlowState, NextState};
use super::search::{IssuerSource, MetadataCandidate, MetadataSearch, issuers_of};
use crate::challenge::ChallengeList;
use crate::endpoint_url::{check_endpoint, redacted};
use crate::json_document::DocumentError;
use crate::registration::{ClientChoice, ClientSources};
use crate::resource_metadata::ResourceMetadata;
use crate::scopes::{RefreshSupport, ScopeSources};
use crate::server_metadata::{MetadataError, ServerMetadata};
use crate::token_request::TokenGrant;

impl AuthorizationFlow {
    pub(super) fn metadata_action(&self, current: &MetadataCandidate) -> Result<FlowAction, FlowError> {
        let mut request = Request::get(&current.url).header(header::ACCEPT, "application/json");
        if current.source == IssuerSource::Origin {
            // Revision 2025-03-26, Server Metadata Discovery.
            request = request.header("MCP-Protocol-Version", "2025-03-26");
        }
        let is_resource = matches!(self.state, FlowState::ResourceMetadata { .. });
        let purpose = if is_resource { FetchPurpose::ResourceMetadata } else { FetchPurpose::ServerMetadata };
        self.fetch(request.body(Bytes::new()), purpose, None)
    }

    pub(super) fn on_resource_metadata(
        &mut self,
        current: &MetadataCandidate,
        search: MetadataSearch,
        response: &Response<Bytes>,
        now: SystemTime,
    ) -> NextState {
        let metadata = match document_of(response).and_then(|body| Ok(ResourceMetadata::parse(body)?)) {
            Ok(metadata) => metadata,
            Err(failure) => return self.no_resource_metadata(current, search, failure, now),
        };
        self.facts.has_metadata = true;
        if !metadata.covers(&self.config.server_url) {
            let (dialled, found) = (redacted(&self.config.server_url), redacted(&metadata.resource));
            return Err(FlowFailure::ResourceMismatch { dialled, found });
        }
        let issuers = issuers_of(&metadata, &self.config)?;
        self.facts.is_dpop_resource |=
            metadata.is_dpop_required || !metadata.dpop_signing_algorithms.is_empty();
        self.facts.resource = Some(metadata.resource);
        self.facts.resource_scopes = metadata.scopes_supported;
        let search = match issuers.is_empty() {
            true => MetadataSearch::for_origin(&self.server_url, self.config.plain_http),
            false => MetadataSearch::for_issuers(&issuers, self.config.plain_http),
        };
        self.look_for_server(search, now)
    }

    pub(super) fn no_resource_metadata(
        &mut self,
        current: &MetadataCandidate,
        mut search: MetadataSearch,
        failure: FlowFailure,
        now: SystemTime,
    ) -> NextState {
        self.remember(current, failure);
        if let Some(current) = search.next(&mut self.facts.attempts) {
            return Ok(FlowState::ResourceMetadata { current, search });
        }
        let search = match &self.config.issuer {
            Some(issuer) => {
                self.facts.has_metadata = true;
                self.facts.resource = Some(self.config.server_url.clone());
                MetadataSearch::for_issuers(std::slice::from_ref(issuer), self.config.plain_http)
            }
            None => MetadataSearch::for_origin(&self.server_url, self.config.plain_http),
        };
        self.look_for_server(search, now)
    }

    fn look_for_server(&mut self, mut search: MetadataSearch, now: SystemTime) -> NextState {
        match search.next(&mut self.facts.attempts) {
            Some(current) => Ok(FlowState::ServerMetadata { current, search }),
            None => self.no_server(IssuerSource::Named, now),
        }
    }

    pub(super) fn on_server_metadata(
        &mut self,
        current: &MetadataCandidate,
        search: MetadataSearch,
        response: &Response<Bytes>,
        now: SystemTime,
    ) -> NextState {
        let policy = self.config.plain_http;
        let metadata =
            document_of(response).and_then(|body| Ok(ServerMetadata::parse(body, &current.issuer, policy)?));
        let is_document = |failure: &FlowFailure| matches!(failure, FlowFailure::Metadata(error) if !matches!(error, MetadataError::Document(_)));
        self.facts.has_metadata |= metadata.as_ref().err().is_none_or(is_document);
        match metadata {
            Ok(metadata) => self.use_server(metadata, now),
            Err(failure) => self.no_server_metadata(current, search, failure, now),
        }
    }

    pub(super) fn no_server_metadata(
        &mut self,
        current: &MetadataCandidate,
        mut search: MetadataSearch,
        failure: FlowFailure,
        now: SystemTime,
    ) -> NextState {
        self.remember(current, failure);
        match search.next(&mut self.facts.attempts) {
            Some(current) => Ok(FlowState::ServerMetadata { current, search }),
            None => self.no_server(current.source, now),
        }
    }

    /// Uses the default endpoints of an MCP server that is its own authorization server, unless it has metadata that
    /// were refused. Otherwise fails with the most specific failure.
    fn no_server(&mut self, source: IssuerSource, now: SystemTime) -> NextState {
        let last = self.facts.attempts.last().map(|attempt| attempt.failure.clone());
        let is_refused = matches!(&last, Some(FlowFailure::Metadata(error)) if !matches!(error, MetadataError::Document(_)));
        if source == IssuerSource::Origin && !is_refused {
            return self.use_server(ServerMetadata::default_endpoints(&self.server_url), now);
        }
        let specific =
            self.facts.attempts.iter().map(|attempt| &attempt.failure).max_by_key(|failure| failure.rank());
        Err(specific.cloned().unwrap_or(FlowFailure::UnexpectedEvent))
    }

    fn remember(&mut self, candidate: &MetadataCandidate, failure: FlowFailure) {
        self.facts.attempts.push(MetadataAttempt { url: redacted(&candidate.url), failure });
    }

    fn use_server(&mut self, server: ServerMetadata, now: SystemTime) -> NextState {
        let has_user = match self.config.grant {
            FlowGrant::AuthorizationCode => true,
            FlowGrant::ClientCredentials
            | FlowGrant::EnterpriseManaged(_)
            | FlowGrant::WorkloadIdentity { .. } => false,
        };
        if has_user {
            server.check_pkce()?;
        }
        let challenge = self.trigger.challenges().and_then(ChallengeList::scope);
        let sources = ScopeSources {
            previous: Some(&self.config.previous_scopes),
            challenge: challenge.as_ref(),
            resource: self.facts.resource_scopes.as_ref(),
            server: server.scopes_supported.as_ref(),
            refresh: if has_user { RefreshSupport::Possible } else { RefreshSupport::Impossible },
        };
        self.facts.scopes = sources.select();
        let clients = ClientSources {
            preregistered: &self.config.preregistered,
            document: self.config.client_document.as_ref(),
            dynamic: &self.config.registrations,
            redirect_uri: has_user.then_some(self.config.redirect_uri.as_str()),
        };
        let choice = clients.choose(&server, now);
        self.facts.server = server;
        match choice {
            ClientChoice::Register(endpoint) => return Ok(FlowState::Registration { endpoint }),
            ClientChoice::Use(client) => self.facts.client = Some(client),
            ClientChoice::Unavailable if matches!(self.config.grant, FlowGrant::WorkloadIdentity { .. }) => {}
            ClientChoice::Unavailable => return Err(FlowFailure::NoClient(self.facts.server.issuer.clone())),
        }
        self.use_grant()
    }

    pub(super) fn use_grant(&mut self) -> NextState {
        match &self.config.grant {
            FlowGrant::AuthorizationCode => {
                let missing = || MetadataError::Document(DocumentError::Missing("authorization_endpoint"));
                let endpoint = self.facts.server.authorization_endpoint.clone().ok_or_else(missing)?;
                Ok(FlowState::Page { endpoint })
            }
            FlowGrant::ClientCredentials => Ok(self.request_token(TokenGrant::ClientCredentials)),
            FlowGrant::EnterpriseManaged(setup) => {
                check_endpoint(&setup.token_endpoint, self.config.plain_http)?;
                Ok(FlowState::IdentityProvider)
            }
            FlowGrant::WorkloadIdentity { assertion } => {
                Ok(self.request_token(TokenGrant::JwtBearer(assertion.clone())))
            }
        }
    }
}

fn document_of(response: &Response<Bytes>) -> Result<&[u8], FlowFailure> {
    match response.status() {
        StatusCode::OK => Ok(response.body()),
        status => Err(FlowFailure::Status(status)),
    }
}
