//! Exchanges the token of a caller for one of the server ([RFC 8693](https://www.rfc-editor.org/rfc/rfc8693)).
//!
//! The token of the caller goes to the configured token endpoint and nowhere else: nothing that the server names is
//! fetched.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use trunkline_session::Timestamp;
use trunkline_transport::dial::AddressPolicy;

use super::active_tokens::ActiveTokens;
use super::attempt::same_tokens;
use super::caller_token::{CallerToken, SubjectToken};
use super::error::AuthorizationError;
use super::{Authorizer, now, random_bytes};
use crate::client_assertion::ClientAssertion;
use crate::endpoint_url::{PlainHttpPolicy, check_endpoint, redacted};
use crate::fetch::{FetchLimits, Fetcher};
use crate::flow::{FlowFailure, FlowOutcome, FlowTrigger};
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

impl Authorizer {
    /// Returns what the caller's token was exchanged for. It is exchanged again if that has expired, and never after its own
    /// expiry.
    pub(super) async fn exchanged_tokens(
        &self,
        setup: &TokenExchangeSetup,
    ) -> Result<Option<Arc<ActiveTokens>>, AuthorizationError> {
        let caller = setup.subject_token.latest();
        let check_caller = || caller.as_ref().map_or(Ok(()), CallerToken::check_expiry);
        check_caller()?;
        let Some(active) = self.tokens().await? else {
            // A request without a token would only be refused.
            let refused = self.standing_refusal(&*self.flight.lock().await);
            return refused.map_or(Ok(None), Err);
        };
        if !active.tokens.is_expired(now()) {
            return Ok(Some(active));
        }
        let mut history = self.flight.lock().await;
        if same_tokens(Some(&active), self.current.read().as_ref()) {
            let scopes = history.requested.clone();
            self.authorize(&mut history, FlowTrigger::Login, scopes).await?;
        }
        check_caller()?;
        Ok(self.current.read().clone())
    }

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
        let caller = setup.subject_token.latest().ok_or(AuthorizationError::NoSubjectToken)?;
        caller.check_expiry()?;
        check_endpoint(&setup.token_endpoint, PlainHttpPolicy::LoopbackOnly)
            .map_err(|error| failed(error.into()))?;
        let no_client = || failed(FlowFailure::NoClient(setup.token_endpoint.clone()));
        let client = self.options.preregistered.first().ok_or_else(no_client)?;
        let grant = TokenGrant::TokenExchange {
            subject_token: caller.token().clone(),
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
        let request = request.build().map_err(|error| failed(FlowFailure::Fetch(error.into())))?;
        // The operator has chosen this address.
        let fetcher = Fetcher::new(self.dialer.with_addresses(AddressPolicy::ANY), FetchLimits::default());
        let response = fetcher.fetch(request).await;
        let response = response.map_err(|error| failed(FlowFailure::Fetch(error.into())))?;
        let context = TokenContext {
            issuer: self.options.issuer.clone().unwrap_or_else(|| setup.token_endpoint.clone()),
            token_endpoint: setup.token_endpoint.clone(),
            revocation_endpoint: None,
            client_id: client.client_id.clone(),
            resource: Some(self.server_url.clone()),
            requested: scopes,
        };
        let tokens =
            read_exchange(&response, context, caller.expires_at()).map_err(|error| failed(error.into()))?;
        // The response may have taken longer than the caller's token was valid.
        caller.check_expiry()?;
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

/// Reads the response. A refresh token is not used, and the token is not used after the end of the caller's own, so that
/// it never outlives the caller's access.
fn read_exchange(
    response: &http::Response<bytes::Bytes>,
    context: TokenContext,
    caller_ends: Option<SystemTime>,
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
    let mut tokens = TokenSet::new(response, context, now())?;
    tokens.expires_at = [tokens.expires_at, caller_ends].into_iter().flatten().min();
    match tokens.kind {
        AccessTokenKind::Bearer => Ok(tokens),
        // No key was sent that it could be bound to.
        AccessTokenKind::Dpop => Err(TokenResponseError::TokenType(shown(&token_type))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanged_token_ends_with_the_token_of_the_caller_at_the_latest() {
        let present = now();
        let after = |seconds: u64| present + Duration::from_secs(seconds);
        for (stated, caller_ends, latest) in [
            (r#","expires_in":3600"#, Some(after(60)), after(60)),
            (r#","expires_in":60"#, Some(after(3600)), after(61)),
            ("", Some(after(60)), after(60)),
            ("", None, after(301)),
        ] {
            let body = format!(r#"{{"access_token":"a","token_type":"Bearer"{stated}}}"#);
            let response = http::Response::builder().header("content-type", "application/json");
            let context = TokenContext {
                issuer: "https://as.example.com".to_owned(),
                token_endpoint: "https://as.example.com/token".to_owned(),
                revocation_endpoint: None,
                client_id: "hub".to_owned(),
                resource: None,
                requested: ScopeSet::default(),
            };
            let response = response.body(body.into()).expect("a response");
            let tokens = read_exchange(&response, context, caller_ends).expect("a token");
            let ends = tokens.expires_at.expect("it expires");
            assert!(ends <= latest, "{stated:?} {caller_ends:?}");
        }
    }
}
