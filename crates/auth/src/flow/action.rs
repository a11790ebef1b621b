use bytes::Bytes;
use http::Request;

use crate::authorization_request::AuthorizationPage;
use crate::endpoint_url::redacted;
use crate::registration::ClientRegistration;
use crate::token_set::TokenSet;

/// What the driver has to do next.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FlowAction {
    /// Send a request, without following redirects, and report its response.
    Fetch(Box<FlowFetch>),
    /// Show a page to the user, and report the response that comes to its redirect URI.
    OpenPage(Box<AuthorizationPage>),
    /// Sign an assertion of the client's identity, and report it.
    NeedAssertion(AssertionRequest),
    /// Store the tokens, and repeat the call.
    Done(Box<FlowOutcome>),
}

/// A request to send. Its `Debug` output has neither body nor headers.
#[derive(Clone)]
pub struct FlowFetch {
    /// The request; its body may have secrets.
    pub request: Request<Bytes>,
    /// What it is for.
    pub purpose: FetchPurpose,
    /// The DPoP proof that the driver has to attach.
    pub proof: Option<ProofRequest>,
}

impl std::fmt::Debug for FlowFetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowFetch")
            .field("method", self.request.method())
            .field("url", &redacted(&self.request.uri().to_string()))
            .field("purpose", &self.purpose)
            .field("proof", &self.proof)
            .finish_non_exhaustive()
    }
}

/// A DPoP proof for one request. Every proof has its own `jti`, also when a request is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofRequest {
    /// The nonce that the server demanded.
    pub nonce: Option<String>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPurpose {
    /// Protected resource metadata.
    ResourceMetadata,
    /// Authorization server metadata.
    ServerMetadata,
    /// A dynamic registration.
    Registration,
    /// A token of the user's identity provider.
    IdentityProvider,
    /// A token.
    Token,
}

/// An assertion of the client's identity to sign (RFC 7523 §3): `iss` and `sub` are the client, `aud` is the audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssertionRequest {
    /// The client.
    pub client_id: String,
    /// The issuer of the authorization server.
    pub audience: String,
    /// The algorithms that the server accepts; empty if it lists none.
    pub algorithms: Vec<String>,
}

/// What a flow results in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    /// The tokens.
    pub tokens: TokenSet,
    /// The client that they belong to; `None` for a workload without a client. It should be stored by its issuer.
    pub client: Option<ClientRegistration>,
}
