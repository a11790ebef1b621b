use std::path::PathBuf;
use std::sync::Arc;

use trunkline_transport::Secret;

use super::error::AuthorizationError;
use super::exchange::TokenExchangeSetup;
use crate::flow::{DpopPolicy, EnterpriseSetup, FlowGrant};
use crate::jose::SigningKey;
use crate::registration::{ClientCredential, ClientDocument, PreregisteredClient};
use crate::scopes::ScopeSet;
use crate::token_store::{MemoryTokenStore, SHARED_PRINCIPAL, TokenStore};
use crate::user_agent::UserAgent;

/// How a client gets the authorization that a server demands.
///
/// Nothing happens before a server refuses a request: then the client discovers the authorization server, obtains a token
/// and sends the request again.
#[derive(Clone)]
#[non_exhaustive]
pub struct AuthorizationOptions {
    /// How tokens are obtained.
    pub grant: AuthorizationGrant,
    /// Where tokens and registrations are kept. By default in memory.
    pub store: Arc<dyn TokenStore>,
    /// The principal that the tokens act for, in the store. By default [`SHARED_PRINCIPAL`].
    pub principal: String,
    /// The name by which the client registers itself.
    pub client_name: String,
    /// Clients that were registered beforehand.
    pub preregistered: Vec<PreregisteredClient>,
    /// The URL of a client metadata document (CIMD) that describes this client.
    pub client_document: Option<ClientDocument>,
    /// What of a preregistered client is stored with its tokens. By default nothing.
    pub client_storage: ClientStorage,
    /// The client's private key, for `private_key_jwt`.
    pub client_key: Option<Arc<SigningKey>>,
    /// The only issuer that is used. By default the one that the server names.
    pub issuer: Option<String>,
    /// Scopes to request in addition to those that the server names.
    pub scopes: ScopeSet,
    /// Whether tokens are bound to a key (RFC 9449). By default if both servers announce it.
    pub dpop: DpopPolicy,
    /// Whether URLs that the server names may point into private networks and to this machine, even if the server itself is
    /// on the public internet. For development.
    pub allows_private_addresses: bool,
}

/// What of a preregistered client is stored with its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStorage {
    /// Nothing.
    Nothing,
    /// How it authenticates, but not its secret: a program that does not know the secret reports that, and sends nothing.
    WithoutSecret,
    /// The secret too, so that programs without these options can refresh its tokens.
    WithSecret,
}

/// How tokens are obtained.
#[derive(Clone)]
#[non_exhaustive]
pub enum AuthorizationGrant {
    /// The user logs in at a page of the authorization server.
    AuthorizationCode(Arc<dyn UserAgent>),
    /// The client has credentials of its own; it has to be preregistered.
    ClientCredentials,
    /// The user's identity provider issues an ID-JAG for the user; the client has to be preregistered.
    EnterpriseManaged {
        /// The token endpoint of the identity provider.
        token_endpoint: String,
        /// The client identifier there.
        client_id: String,
        /// The client's secret there.
        client_secret: Option<Secret>,
        /// The token of the user's sign-in.
        subject_token: CredentialSource,
        /// Its type, such as [`ID_TOKEN_TYPE`](crate::token_request::ID_TOKEN_TYPE).
        subject_token_type: String,
    },
    /// A platform issues a JWT for this workload (JWT bearer grant, RFC 7523).
    WorkloadIdentity(CredentialSource),
    /// The token of a caller is exchanged (RFC 8693); the client has to be preregistered.
    TokenExchange(TokenExchangeSetup),
}

/// A credential that may change while the program runs.
#[derive(Clone, Debug)]
pub enum CredentialSource {
    /// The credential itself.
    Value(Secret),
    /// A file, which is read at each use.
    File(PathBuf),
}

impl AuthorizationOptions {
    fn new(grant: AuthorizationGrant) -> Self {
        Self {
            grant,
            store: Arc::new(MemoryTokenStore::default()),
            principal: SHARED_PRINCIPAL.to_owned(),
            client_name: "trunkline".to_owned(),
            preregistered: Vec::new(),
            client_document: None,
            client_storage: ClientStorage::Nothing,
            client_key: None,
            issuer: None,
            scopes: ScopeSet::default(),
            dpop: DpopPolicy::IfAnnounced,
            allows_private_addresses: false,
        }
    }

    /// The user logs in by a user agent, such as [`BrowserUserAgent`](crate::user_agent::BrowserUserAgent).
    pub fn code_flow(agent: impl UserAgent) -> Self {
        Self::new(AuthorizationGrant::AuthorizationCode(Arc::new(agent)))
    }

    /// The client authenticates itself with a secret; there is no user.
    pub fn client_secret(client_id: impl Into<String>, secret: impl Into<String>) -> Self {
        let credential = ClientCredential::Secret(Secret::new(secret.into()));
        Self::new(AuthorizationGrant::ClientCredentials).with_client(client_id, credential)
    }

    /// The client authenticates itself with a private key; there is no user.
    pub fn client_key(client_id: impl Into<String>, key: SigningKey) -> Self {
        let mut options = Self::new(AuthorizationGrant::ClientCredentials)
            .with_client(client_id, ClientCredential::PrivateKey);
        options.client_key = Some(Arc::new(key));
        options
    }

    /// A platform issues a JWT for this workload (JWT bearer grant, RFC 7523).
    pub fn workload_identity(assertion: CredentialSource) -> Self {
        Self::new(AuthorizationGrant::WorkloadIdentity(assertion))
    }

    /// Obtains tokens by any grant.
    pub fn with_grant(grant: AuthorizationGrant) -> Self {
        Self::new(grant)
    }

    /// Adds a client that is registered at every authorization server.
    #[must_use]
    pub fn with_client(mut self, client_id: impl Into<String>, credential: ClientCredential) -> Self {
        self.preregistered.push(PreregisteredClient {
            issuer: None,
            client_id: client_id.into(),
            credential,
        });
        self
    }

    /// Uses a client metadata document (CIMD) at authorization servers that support them.
    #[must_use]
    pub fn with_client_document(mut self, document: ClientDocument) -> Self {
        self.client_document = Some(document);
        self
    }

    /// Keeps tokens and registrations in a store.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn TokenStore>) -> Self {
        self.store = store;
        self
    }
}

impl AuthorizationGrant {
    /// Reads the credentials of the grant.
    pub(super) async fn to_flow(&self) -> Result<FlowGrant, AuthorizationError> {
        Ok(match self {
            Self::AuthorizationCode(_) => FlowGrant::AuthorizationCode,
            Self::ClientCredentials => FlowGrant::ClientCredentials,
            Self::EnterpriseManaged {
                token_endpoint,
                client_id,
                client_secret,
                subject_token,
                subject_token_type,
            } => FlowGrant::EnterpriseManaged(EnterpriseSetup {
                token_endpoint: token_endpoint.clone(),
                client_id: client_id.clone(),
                client_secret: client_secret.clone(),
                subject_token: subject_token.read().await?,
                subject_token_type: subject_token_type.clone(),
            }),
            Self::WorkloadIdentity(source) => FlowGrant::WorkloadIdentity { assertion: source.read().await? },
            // It has one step, which discovers nothing, and is not a flow.
            Self::TokenExchange(_) => return Err(AuthorizationError::NoSubjectToken),
        })
    }
}

/// The longest credential that is read from a file.
const MAX_CREDENTIAL_BYTES: u64 = 64 * 1024;

impl CredentialSource {
    async fn read(&self) -> Result<Secret, AuthorizationError> {
        let path = match self {
            Self::Value(secret) => return Ok(secret.clone()),
            Self::File(path) => path.clone(),
        };
        let shown = path.display().to_string();
        let reading = tokio::task::spawn_blocking(move || read_credential(&path));
        let read = reading.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        read.map_err(|source| AuthorizationError::CredentialFile { path: shown, source: Arc::new(source) })
    }
}

fn read_credential(path: &std::path::Path) -> std::io::Result<Secret> {
    use std::io::Read as _;
    let mut text = zeroize::Zeroizing::new(String::new());
    std::fs::File::open(path)?.take(MAX_CREDENTIAL_BYTES).read_to_string(&mut text)?;
    Ok(Secret::new(text.trim()))
}

impl std::fmt::Debug for AuthorizationOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorizationOptions")
            .field("grant", &self.grant)
            .field("principal", &self.principal)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AuthorizationGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AuthorizationCode(_) => "AuthorizationCode",
            Self::ClientCredentials => "ClientCredentials",
            Self::EnterpriseManaged { .. } => "EnterpriseManaged",
            Self::WorkloadIdentity(_) => "WorkloadIdentity",
            Self::TokenExchange(_) => "TokenExchange",
        })
    }
}
