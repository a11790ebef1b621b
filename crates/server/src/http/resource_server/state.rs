use std::sync::Arc;

use serde_json::Value;
use trunkline_auth::access_token::{TokenError, UnverifiedToken};
use trunkline_auth::issuer::{IssuerClient, TokenCheck};

use super::error::ResourceServerError;
use super::options::ResourceServerOptions;
use super::public_uri::PublicUris;
use crate::http::auth::Authenticated;
use crate::http::protected_resource::ProtectedResource;
use crate::revocation::Revocation;

/// What a resource server is at one time: it is replaced as a whole.
#[derive(Debug)]
pub(super) struct ResourceServerState {
    pub(super) options: ResourceServerOptions,
    pub(super) issuers: Vec<Arc<IssuerState>>,
    pub(super) resource: Arc<ProtectedResource>,
    pub(super) public_uris: PublicUris,
}

/// A trusted issuer, and the means to end what was opened with its tokens.
#[derive(Debug)]
pub(super) struct IssuerState {
    pub(super) client: IssuerClient,
    pub(super) revocation: Revocation,
}

impl ResourceServerState {
    /// Makes the state. Issuers that are described as in `previous` keep their keys and their tokens.
    pub(super) fn new(
        options: ResourceServerOptions,
        previous: Option<&Self>,
        on_withdrawal: impl Fn() + Clone + Send + Sync + 'static,
    ) -> Result<Self, ResourceServerError> {
        check_issuers(&options)?;
        let issuers = options.issuers.iter().map(|trusted| {
            let mut known = previous.iter().flat_map(|previous| &previous.issuers);
            if let Some(known) = known.find(|known| known.client.trusted() == trusted) {
                return Ok(known.clone());
            }
            let (dialer, policy) = (options.dialer.clone(), options.key_cache);
            let client = IssuerClient::new(trusted.clone(), dialer, policy, on_withdrawal.clone())?;
            Ok(Arc::new(IssuerState { client, revocation: Revocation::new() }))
        });
        let issuers = issuers.collect::<Result<_, ResourceServerError>>()?;
        let resource = Arc::new(describe(&options)?);
        let public_uris = PublicUris::new(&options.resource, options.endpoint_path.as_deref());
        Ok(Self { options, issuers, resource, public_uris })
    }

    /// Returns the sender of a request with a static token.
    pub(super) fn find_static(&self, token: &[u8]) -> Option<Authenticated> {
        self.options.static_tokens.as_ref()?.find(token)
    }

    /// Returns the issuer that checks a token: the one that a JWT names, or the one that introspects the others.
    pub(super) fn issuer_of(&self, token: &str) -> Result<&Arc<IssuerState>, TokenError> {
        match UnverifiedToken::parse(token) {
            Ok(parsed) => {
                let mut issuers = self.issuers.iter();
                issuers
                    .find(|issuer| issuer.client.trusted().issuer() == parsed.issuer())
                    .ok_or(TokenError::Issuer)
            }
            Err(error) => self.issuers.iter().find(|issuer| issuer.introspects()).ok_or(error),
        }
    }
}

impl IssuerState {
    pub(super) fn introspects(&self) -> bool {
        matches!(self.client.trusted().check, TokenCheck::Introspection { .. })
    }
}

fn check_issuers(options: &ResourceServerOptions) -> Result<(), ResourceServerError> {
    if options.issuers.is_empty() && options.static_tokens.is_none() {
        return Err(ResourceServerError::NoCredentials);
    }
    for (at, issuer) in options.issuers.iter().enumerate() {
        let mut earlier = options.issuers.iter().take(at);
        if earlier.any(|other| other.issuer() == issuer.issuer()) {
            return Err(ResourceServerError::DuplicateIssuer(issuer.issuer().to_owned()));
        }
    }
    let mut introspecting =
        options.issuers.iter().filter(|issuer| matches!(issuer.check, TokenCheck::Introspection { .. }));
    match (introspecting.next(), introspecting.next()) {
        (Some(first), Some(second)) => Err(ResourceServerError::SeveralIntrospections {
            first: first.issuer().to_owned(),
            second: second.issuer().to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Describes the endpoint for clients ([RFC 9728 §2](https://www.rfc-editor.org/rfc/rfc9728#section-2)).
fn describe(options: &ResourceServerOptions) -> Result<ProtectedResource, ResourceServerError> {
    let mut resource = ProtectedResource::new(&*options.resource)?.scopes(&options.required_scopes);
    for issuer in &options.issuers {
        resource = resource.authorization_server(issuer.issuer());
    }
    if !options.optional_scopes.is_empty() {
        let all: Vec<&String> = options.required_scopes.iter().chain(&options.optional_scopes).collect();
        resource =
            resource.member("scopes_supported", Value::from(all.into_iter().cloned().collect::<Vec<_>>()));
    }
    for (name, value) in options.dpop.metadata() {
        resource = resource.member(name, value);
    }
    for (name, value) in &options.metadata {
        resource = resource.member(name.as_str(), value.clone());
    }
    Ok(resource)
}
