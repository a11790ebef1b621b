//! Exchanges the token of a caller for one of the server ([RFC 8693](https://www.rfc-editor.org/rfc/rfc8693)).
//!
//! The token of the caller goes to the configured token endpoint and nowhere else: nothing that the server names is
//! fetched.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use trunkline_session::Timestamp;
use trunkline_transport::Secret;
use trunkline_transport::dial::AddressPolicy;

use super::error::AuthorizationError;
use super::{Authorizer, now, random_bytes};
use crate::client_assertion::ClientAssertion;
use crate::endpoint_url::{PlainHttpPolicy, check_endpoint, redacted};
use crate::fetch::{FetchLimits, Fetcher};
use crate::flow::{FlowFailure, FlowOutcome};
use crate::registration::{ClientCredential, PreregisteredClient};
use crate::scopes::ScopeSet;
use crate::token_request::{
    ACCESS_TOKEN_TYPE, ClientAuthentication, JWT_TOKEN_TYPE, TokenGrant, TokenRequest, choose_auth_method,
};
use crate::token_response::{TokenResponseError, read_token_response};
use crate::token_set::{AccessTokenKind, TokenContext, TokenSet};

/// How long an exchanged token is used without a stated lifetime.
const UNSTATED_LIFETIME: Duration = Duration::from_secs(300);

/// How the token of a caller is exchanged for one of the server. The client has to be preregistered.
#[derive(Clone, Debug)]
pub struct TokenExchangeSetup {
    /// The token endpoint, the only place that the caller's token is sent to.
    pub token_endpoint: String,
    /// The name of the server at the authorization server, if it does not go by the URL alone.
    pub audience: Option<String>,
    /// The token of the caller.
    pub subject_token: SubjectToken,
}

/// The access token of a caller, which later requests of the same caller replace. Clones are the same.
#[derive(Clone, Default)]
pub struct SubjectToken(Arc<Mutex<Option<Secret>>>);

impl SubjectToken {
    /// Sets the token, and reports whether it is another one than before.
    pub fn set(&self, token: &Secret) -> bool {
        let mut current = self.0.lock();
        let is_new = current.as_ref() != Some(token);
        if is_new {
            *current = Some(token.clone());
        }
        is_new
    }

    fn get(&self) -> Option<Secret> {
        self.0.lock().clone()
    }
}

impl fmt::Debug for SubjectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectToken(…)")
    }
}

impl Authorizer {
    /// Exchanges the token of the caller.
    pub(super) async fn exchange(
        &self,
        setup: &TokenExchangeSetup,
        scopes: ScopeSet,
    ) -> Result<FlowOutcome, AuthorizationError> {
        let failed = |failure: FlowFailure| AuthorizationError::Exchange {
            url: redacted(&setup.token_endpoint),
            failure: Box::new(failure),
        };
        let subject_token = setup.subject_token.get().ok_or(AuthorizationError::NoSubjectToken)?;
        check_endpoint(&setup.token_endpoint, PlainHttpPolicy::LoopbackOnly)
            .map_err(|error| failed(error.into()))?;
        let no_client = || failed(FlowFailure::NoClient(setup.token_endpoint.clone()));
        let client = self.options.preregistered.first().ok_or_else(no_client)?;
        let grant = TokenGrant::TokenExchange {
            subject_token,
            subject_token_type: ACCESS_TOKEN_TYPE.to_owned(),
            requested_token_type: ACCESS_TOKEN_TYPE.to_owned(),
            audience: setup.audience.clone(),
        };
        let request = TokenRequest {
            endpoint: &setup.token_endpoint,
            grant: &grant,
            client: &self.exchange_authentication(setup, client)?,
            resource: Some(&self.server_url),
            scopes: &scopes,
        };
        let request = request.build().map_err(|error| failed(FlowFailure::Fetch(error.to_string())))?;
        // The operator has chosen this address.
        let fetcher = Fetcher::new(self.dialer.with_addresses(AddressPolicy::ANY), FetchLimits::default());
        let response = fetcher.fetch(request).await;
        let response = response.map_err(|error| failed(FlowFailure::Fetch(error.to_string())))?;
        let context = TokenContext {
            issuer: self.options.issuer.clone().unwrap_or_else(|| setup.token_endpoint.clone()),
            token_endpoint: setup.token_endpoint.clone(),
            revocation_endpoint: None,
            client_id: client.client_id.clone(),
            resource: Some(self.server_url.clone()),
            requested: scopes,
        };
        let tokens = read_exchange(&response, context).map_err(|error| failed(error.into()))?;
        Ok(FlowOutcome { tokens, client: None })
    }

    fn exchange_authentication(
        &self,
        setup: &TokenExchangeSetup,
        client: &PreregisteredClient,
    ) -> Result<ClientAuthentication, AuthorizationError> {
        let (client_id, credential) = (&client.client_id, &client.credential);
        if *credential != ClientCredential::PrivateKey {
            let method = choose_auth_method(credential, None);
            return Ok(ClientAuthentication::new(client_id, credential, method));
        }
        let key = self.options.client_key.as_deref().ok_or(AuthorizationError::NoClientKey)?;
        let issuer = self.options.issuer.as_deref().unwrap_or(&setup.token_endpoint);
        let assertion = ClientAssertion { client_id, issuer, key_id: None };
        let signed = assertion.sign(key, &random_bytes()?, Timestamp::from_system(now()));
        let assertion = signed.map_err(|_| AuthorizationError::Signing)?;
        Ok(ClientAuthentication::Assertion { client_id: client_id.clone(), assertion })
    }
}

/// Reads the response. A refresh token is not used: the next token is exchanged for the caller's next one, so that it
/// never outlives the caller's access.
fn read_exchange(
    response: &http::Response<bytes::Bytes>,
    context: TokenContext,
) -> Result<TokenSet, TokenResponseError> {
    let mut response = read_token_response(response)?;
    response.refresh_token = None;
    response.expires_in.get_or_insert(UNSTATED_LIFETIME);
    let issued = response.issued_token_type.as_deref();
    let other = issued.filter(|issued| ![ACCESS_TOKEN_TYPE, JWT_TOKEN_TYPE].contains(issued));
    let shown = |name: &str| name.chars().filter(|c| !c.is_control()).take(128).collect();
    if let Some(other) = other {
        return Err(TokenResponseError::TokenType(shown(other)));
    }
    let token_type = response.token_type.clone();
    let tokens = TokenSet::new(response, context, now())?;
    match tokens.kind {
        AccessTokenKind::Bearer => Ok(tokens),
        // No key was sent that it could be bound to.
        AccessTokenKind::Dpop => Err(TokenResponseError::TokenType(shown(&token_type))),
    }
}
