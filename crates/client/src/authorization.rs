//! How a client gets the tokens that a server demands: OAuth, as [`ClientBuilder::authorization`] uses it.
//!
//! [`ClientBuilder::authorization`]: crate::ClientBuilder::authorization

pub use trunkline_auth::authorizer::{
    AuthorizationError, AuthorizationGrant, AuthorizationOptions, Authorizer, CallerToken, ClientStorage,
    CredentialSource, EndedLogin, LoginDiscovery, PendingLogin, RevocationOutcome,
};
pub use trunkline_auth::flow::{DpopPolicy, FlowError, FlowFailure, FlowStep};
pub use trunkline_auth::jose::SigningKey;
pub use trunkline_auth::registration::{
    ClientCredential, ClientDocument, ClientRegistration, PreregisteredClient,
};
pub use trunkline_auth::scopes::ScopeSet;
pub use trunkline_auth::server_metadata::ServerMetadata;
pub use trunkline_auth::token_set::TokenSet;
pub use trunkline_auth::token_store::{
    FileTokenStore, MemoryTokenStore, SHARED_PRINCIPAL, StoreFuture, StoreKey, StoredTokens, TokenGeneration,
    TokenKey, TokenLock, TokenStore, TokenStoreError,
};
pub use trunkline_auth::user_agent::{
    BrowserUserAgent, PasteUserAgent, PreparedRedirect, UnattendedUserAgent, UserAgent, UserAgentError,
};
