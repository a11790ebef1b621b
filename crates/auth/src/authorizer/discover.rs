//! The steps before a login, without a user: what a server would demand, and what is wrong with it.

use std::time::SystemTime;

use super::error::AuthorizationError;
use super::{Authorizer, flow_random};
use crate::flow::{
    AuthorizationFlow, FetchPurpose, FlowAction, FlowConfig, FlowDiscovery, FlowError, FlowTrigger,
};
use crate::scopes::ScopeSet;
use crate::server_metadata::ServerMetadata;

/// The redirect URI of a flow that ends before it is used.
const REDIRECT_URI: &str = "http://127.0.0.1/callback";

/// What was found out about the login at a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginDiscovery {
    /// Whether the server refused a request without credentials.
    pub is_challenged: bool,
    /// The resource, as its metadata name it.
    pub resource: Option<String>,
    /// The scopes of the resource.
    pub resource_scopes: Option<ScopeSet>,
    /// The authorization server.
    pub server: Option<ServerMetadata>,
    /// The scopes that would be requested.
    pub scopes: ScopeSet,
    /// Whether the server has metadata of any kind.
    pub has_metadata: bool,
    /// The step that fails, if one does.
    pub failure: Option<FlowError>,
}

impl Authorizer {
    /// Goes through the steps of a login up to the registration of a client, which is not made.
    ///
    /// # Errors
    /// The store failed.
    pub async fn discover(&self) -> Result<LoginDiscovery, AuthorizationError> {
        let trigger = self.probe().await;
        let is_challenged = matches!(trigger, FlowTrigger::Challenged(_));
        let mut config = FlowConfig::new(&self.server_url, REDIRECT_URI);
        config.issuer.clone_from(&self.options.issuer);
        config.preregistered = self.bound_clients().await?;
        config.client_document.clone_from(&self.options.client_document);
        config.registrations = self.options.store.load_clients().await?;
        config.previous_scopes = self.options.scopes.clone();
        let mut flow = match AuthorizationFlow::new(config, trigger, flow_random()?) {
            Ok(flow) => flow,
            Err(error) => return Ok(LoginDiscovery::failed(is_challenged, error)),
        };
        let failure = self.run_metadata_steps(&mut flow).await.err();
        let FlowDiscovery { resource, resource_scopes, server, scopes, has_metadata, .. } = flow.discovered();
        Ok(LoginDiscovery {
            is_challenged,
            resource: resource.map(str::to_owned),
            resource_scopes: resource_scopes.cloned(),
            server: server.cloned(),
            scopes: scopes.clone(),
            has_metadata,
            failure,
        })
    }

    /// Fetches metadata until the flow needs anything else.
    async fn run_metadata_steps(&self, flow: &mut AuthorizationFlow) -> Result<(), FlowError> {
        let fetcher = self.fetcher().await;
        loop {
            let FlowAction::Fetch(fetch) = flow.next()? else { return Ok(()) };
            match fetch.purpose {
                FetchPurpose::ResourceMetadata | FetchPurpose::ServerMetadata => {}
                _ => return Ok(()),
            }
            match fetcher.fetch(fetch.request).await {
                Ok(response) => flow.on_response(&response, SystemTime::now())?,
                Err(error) => flow.on_fetch_failed(error, SystemTime::now())?,
            }
        }
    }
}

impl LoginDiscovery {
    fn failed(is_challenged: bool, failure: FlowError) -> Self {
        Self {
            is_challenged,
            resource: None,
            resource_scopes: None,
            server: None,
            scopes: ScopeSet::default(),
            has_metadata: failure.has_metadata(),
            failure: Some(failure),
        }
    }
}
