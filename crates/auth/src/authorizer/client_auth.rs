use std::time::SystemTime;

use trunkline_session::Timestamp;

use super::active_tokens::ActiveTokens;
use super::error::AuthorizationError;
use super::options::AuthorizationOptions;
use super::random_bytes;
use crate::client_assertion::ClientAssertion;
use crate::registration::{ClientCredential, ClientRegistration};
use crate::token_request::{ClientAuthentication, TokenAuthMethod, choose_auth_method};

/// Authenticates the client that tokens were issued to, for one request.
pub(super) async fn client_authentication(
    options: &AuthorizationOptions,
    active: &ActiveTokens,
) -> Result<ClientAuthentication, AuthorizationError> {
    let (client_id, issuer) = (&active.key.client_id, &active.key.issuer);
    let configured = options.preregistered.iter().find(|known| known.client_id == *client_id);
    let (credential, method) = match (registered_client(options, active).await?, configured) {
        (Some(client), _) => (client.credential, client.auth_method),
        (None, Some(known)) => (known.credential.clone(), choose_auth_method(&known.credential, None)),
        (None, None) => (ClientCredential::Public, TokenAuthMethod::None),
    };
    if credential != ClientCredential::PrivateKey {
        return Ok(ClientAuthentication::new(client_id, &credential, method));
    }
    let key = options.client_key.as_deref().ok_or(AuthorizationError::NoClientKey)?;
    let assertion = ClientAssertion { client_id, issuer, key_id: None };
    let now = Timestamp::from_system(SystemTime::now());
    let assertion = assertion.sign(key, &random_bytes()?, now).map_err(|_| AuthorizationError::Signing)?;
    Ok(ClientAuthentication::Assertion { client_id: client_id.clone(), assertion })
}

/// Finds the client as this process or an earlier one has registered it.
async fn registered_client(
    options: &AuthorizationOptions,
    active: &ActiveTokens,
) -> Result<Option<ClientRegistration>, AuthorizationError> {
    if active.client.is_some() {
        return Ok(active.client.clone());
    }
    let clients = options.store.load_clients().await?;
    let is_it = |client: &ClientRegistration| {
        client.issuer == active.key.issuer && client.client_id == active.key.client_id
    };
    Ok(clients.into_iter().find(is_it))
}
