use trunkline_transport::Secret;

use crate::challenge::ChallengeList;
use crate::endpoint_url::PlainHttpPolicy;
use crate::registration::{ClientDocument, ClientRegistration, PreregisteredClient};
use crate::scopes::ScopeSet;

/// How the state machine obtains a token. The driver makes it from an
/// [`AuthorizationGrant`](crate::authorizer::AuthorizationGrant), with
/// credentials read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum FlowGrant {
    /// The user authorizes the client in a browser.
    #[default]
    AuthorizationCode,
    /// The client authorizes itself (extension `io.modelcontextprotocol/oauth-client-credentials`). The client has to be
    /// preregistered.
    ClientCredentials,
    /// The user's identity provider issues an ID-JAG for the user (extension
    /// `io.modelcontextprotocol/enterprise-managed-authorization`). The client has to be preregistered.
    EnterpriseManaged(EnterpriseSetup),
    /// A platform issues a JWT for the workload (JWT bearer grant, RFC 7523), which is sent once. A preregistered client
    /// is optional.
    WorkloadIdentity {
        /// The JWT of the platform.
        assertion: Secret,
    },
}

/// How an identity assertion for another domain (ID-JAG) is obtained.
#[derive(Clone, Debug)]
pub struct EnterpriseSetup {
    /// The token endpoint of the identity provider.
    pub token_endpoint: String,
    /// The client identifier at the identity provider.
    pub client_id: String,
    /// The client's secret there, which is sent in the body.
    pub client_secret: Option<Secret>,
    /// The token of the user's sign-in.
    pub subject_token: Secret,
    /// Its type, such as [`ID_TOKEN_TYPE`](crate::token_request::ID_TOKEN_TYPE).
    pub subject_token_type: String,
}

/// Whether tokens are bound to a key by DPoP (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DpopPolicy {
    /// Never.
    #[default]
    Off,
    /// If the MCP server and the authorization server both announce it.
    IfAnnounced,
    /// Always; a token that is not bound is refused.
    Required,
}

/// What a flow is for, and what the client has for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowConfig {
    /// The URL of the MCP server as it is dialled.
    pub server_url: String,
    /// How the client obtains a token.
    pub grant: FlowGrant,
    /// The issuer that the operator configured; others are refused. Also used if the server has no metadata.
    pub issuer: Option<String>,
    /// Clients that the operator registered.
    pub preregistered: Vec<PreregisteredClient>,
    /// The client metadata document that the operator publishes.
    pub client_document: Option<ClientDocument>,
    /// Dynamic registrations that were made before.
    pub registrations: Vec<ClientRegistration>,
    /// The name by which the client registers.
    pub client_name: String,
    /// Where authorization responses go.
    pub redirect_uri: String,
    /// The scopes that earlier flows for this resource requested. They are requested again.
    pub previous_scopes: ScopeSet,
    /// Whether tokens are bound to a key.
    pub dpop: DpopPolicy,
    /// The thumbprint of that key, which binds the authorization code too.
    pub dpop_thumbprint: Option<String>,
    /// Where plain HTTP is accepted.
    pub plain_http: PlainHttpPolicy,
}

impl FlowConfig {
    /// Returns the configuration for a public client with a user.
    pub fn new(server_url: impl Into<String>, redirect_uri: impl Into<String>) -> Self {
        Self {
            server_url: server_url.into(),
            grant: FlowGrant::default(),
            issuer: None,
            preregistered: Vec::new(),
            client_document: None,
            registrations: Vec::new(),
            client_name: "trunkline".to_owned(),
            redirect_uri: redirect_uri.into(),
            previous_scopes: ScopeSet::default(),
            dpop: DpopPolicy::default(),
            dpop_thumbprint: None,
            plain_http: PlainHttpPolicy::default(),
        }
    }
}

/// What the flow is started by.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum FlowTrigger {
    /// The user, without a response of the server.
    #[default]
    Login,
    /// A response with status 401 or 403.
    Challenged(ChallengeList),
}

impl FlowTrigger {
    pub(super) fn challenges(&self) -> Option<&ChallengeList> {
        match self {
            Self::Login => None,
            Self::Challenged(challenges) => Some(challenges),
        }
    }
}
