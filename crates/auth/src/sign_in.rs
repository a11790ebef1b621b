//! Lets a browser prove at an issuer who its user is: an authorization code flow with PKCE, of a web client that the
//! operator registered.
//!
//! The result is an access token, which the caller validates like any other: this flow itself trusts nothing in it.

use bytes::Bytes;
use http::{Request, StatusCode};
use trunkline_http1::Url;
use trunkline_transport::Secret;
use trunkline_transport::dial::Dialer;

use crate::authorization_request::AuthorizationRequest;
use crate::callback::{AuthorizationCallback, CallbackError, PendingAuthorization};
use crate::discovery::server_metadata_urls;
use crate::endpoint_url::{EndpointError, PlainHttpPolicy, check_endpoint};
use crate::fetch::{FetchError, FetchLimits, Fetcher};
use crate::pkce::FlowRandom;
use crate::registration::ClientCredential;
use crate::scopes::ScopeSet;
use crate::server_metadata::{MetadataError, ServerMetadata};
use crate::token_request::{ClientAuthentication, TokenGrant, TokenRequest, choose_auth_method};
use crate::token_response::{TokenResponseError, read_token_response};

/// A web client at an issuer.
#[derive(Clone, Debug)]
pub struct SignInClient {
    /// The issuer.
    pub issuer: String,
    /// The identifier of the client there.
    pub client_id: String,
    /// Its secret; `None` for a public client.
    pub client_secret: Option<Secret>,
    /// The resource that the token is requested for.
    pub resource: String,
    /// The scopes that the resource requires.
    pub scopes: ScopeSet,
    /// Opens connections to the issuer.
    pub dialer: Dialer,
}

/// A sign-in that a browser was sent to.
#[derive(Debug)]
pub struct SignInRequest {
    url: String,
    redirect_uri: String,
    random: FlowRandom,
    pending: PendingAuthorization,
    metadata: ServerMetadata,
}

/// The reason why a sign-in failed. It contains no code, token or secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignInError {
    /// The issuer is not a usable URL.
    #[error("the issuer cannot be used: {0}")]
    Issuer(#[source] EndpointError),
    /// Its metadata could not be fetched.
    #[error("the metadata of the issuer cannot be fetched: {0}")]
    Fetch(#[source] FetchError),
    /// There was no document at the URL of its metadata.
    #[error("the metadata of the issuer cannot be fetched: {url} responded with status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status of the response.
        status: StatusCode,
    },
    /// A request to it cannot be made, since the URL of an endpoint is unusable.
    #[error("the issuer cannot be requested: {0}")]
    Request(#[source] http::Error),
    /// The token request got no response.
    #[error("the token request to the issuer failed: {0}")]
    TokenRequest(#[source] FetchError),
    /// Its metadata cannot be used.
    #[error("the metadata of the issuer cannot be used: {0}")]
    Metadata(#[from] MetadataError),
    /// It has no authorization endpoint.
    #[error("the issuer has no authorization endpoint")]
    NoEndpoint,
    /// The authorization response was rejected.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// No token was issued.
    #[error(transparent)]
    Token(#[from] TokenResponseError),
    /// There are no random numbers.
    #[error("the system has no random numbers")]
    NoRandom,
}

impl SignInRequest {
    /// Returns the URL to send the browser to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the `state` of the request, by which its answer is found.
    pub fn state(&self) -> &Secret {
        &self.random.state
    }
}

impl SignInClient {
    /// Begins a sign-in that ends at a redirect URI.
    ///
    /// # Errors
    /// The metadata of the issuer cannot be fetched or used.
    pub async fn begin(&self, redirect_uri: &str) -> Result<SignInRequest, SignInError> {
        let metadata = self.metadata().await?;
        let endpoint = metadata.authorization_endpoint.as_deref().ok_or(SignInError::NoEndpoint)?;
        let mut is_filled = true;
        let random = FlowRandom::draw(|bytes| is_filled &= getrandom::fill(bytes).is_ok());
        if !is_filled {
            return Err(SignInError::NoRandom);
        }
        let request = AuthorizationRequest {
            endpoint,
            client_id: &self.client_id,
            redirect_uri,
            resource: Some(&self.resource),
            scopes: &self.scopes,
            dpop_thumbprint: None,
            random: &random,
        };
        Ok(SignInRequest {
            url: request.url(),
            redirect_uri: redirect_uri.to_owned(),
            pending: PendingAuthorization {
                state: random.state.clone(),
                issuer: metadata.issuer.clone(),
                is_issuer_in_response: metadata.is_issuer_in_response,
            },
            random,
            metadata,
        })
    }

    /// Validates the answer of the issuer, and returns the access token.
    ///
    /// # Errors
    /// The answer is not one to this request, or no token was issued.
    pub async fn finish(
        &self,
        request: &SignInRequest,
        callback: &AuthorizationCallback,
    ) -> Result<Secret, SignInError> {
        let code = callback.validate(&request.pending)?;
        let grant = TokenGrant::AuthorizationCode {
            code,
            redirect_uri: request.redirect_uri.clone(),
            verifier: request.random.verifier.secret().clone(),
        };
        let credential =
            self.client_secret.clone().map_or(ClientCredential::Public, ClientCredential::Secret);
        let method = choose_auth_method(&credential, request.metadata.token_auth_methods.as_deref());
        let token_request = TokenRequest {
            endpoint: &request.metadata.token_endpoint,
            grant: &grant,
            client: &ClientAuthentication::new(&self.client_id, &credential, method),
            resource: Some(&self.resource),
            scopes: &ScopeSet::default(),
        };
        let token_request = token_request.build().map_err(SignInError::Request)?;
        let response = self.fetcher().await?.fetch(token_request).await;
        let response = response.map_err(SignInError::TokenRequest)?;
        Ok(read_token_response(&response)?.access_token)
    }

    fn issuer_url(&self) -> Result<Url, SignInError> {
        check_endpoint(&self.issuer, PlainHttpPolicy::LoopbackOnly).map_err(SignInError::Issuer)
    }

    /// Returns a fetcher for URLs that the issuer chose: they may be public, or in its own kind of network.
    async fn fetcher(&self) -> Result<Fetcher, SignInError> {
        let policy = self.dialer.policy_near(&self.issuer_url()?).await;
        Ok(Fetcher::new(self.dialer.with_addresses(policy), FetchLimits::default()))
    }

    /// Tries the places of the metadata in order. The reason of the first failure is returned.
    async fn metadata(&self) -> Result<ServerMetadata, SignInError> {
        let url = self.issuer_url()?;
        let fetcher = Fetcher::new(self.dialer.clone(), FetchLimits::default());
        let mut failure = None;
        for url in server_metadata_urls(&url) {
            match self.metadata_at(&fetcher, &url).await {
                Ok(metadata) => return Ok(metadata),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or(SignInError::NoEndpoint))
    }

    async fn metadata_at(&self, fetcher: &Fetcher, url: &str) -> Result<ServerMetadata, SignInError> {
        let request = Request::get(url).body(Bytes::new()).map_err(SignInError::Request)?;
        let response = fetcher.fetch(request).await.map_err(SignInError::Fetch)?;
        if response.status() != StatusCode::OK {
            return Err(SignInError::Status { url: url.to_owned(), status: response.status() });
        }
        Ok(ServerMetadata::parse(response.body(), &self.issuer, PlainHttpPolicy::LoopbackOnly)?)
    }
}
