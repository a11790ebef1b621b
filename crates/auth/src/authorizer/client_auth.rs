use std::time::SystemTime;

use trunkline_session::Timestamp;

use super::active_tokens::ActiveTokens;
use super::error::AuthorizationError;
use super::options::AuthorizationOptions;
use super::random_bytes;
use crate::client_assertion::ClientAssertion;
use crate::registration::{ClientCredential, ClientRegistration, PreregisteredClient, RegistrationSource};
use crate::token_request::{ClientAuthentication, TokenAuthMethod, choose_auth_method};

/// Authenticates the client that tokens were issued to, for one request.
pub(super) async fn client_authentication(
    options: &AuthorizationOptions,
    active: &ActiveTokens,
) -> Result<ClientAuthentication, AuthorizationError> {
    let (client_id, issuer) = (&active.key.client_id, &active.key.issuer);
    let registered = registered_client(options, active).await?;
    let (credential, method) = match (configured_credential(options, active), registered) {
        // A stored secret may be one that was replaced since.
        (Some(credential), registered) => {
            let known = registered.filter(|client| is_method_for(credential, client));
            let method = known.map(|client| client.auth_method);
            (credential.clone(), method.unwrap_or_else(|| choose_auth_method(credential, None)))
        }
        (None, Some(client)) if client.lacks_secret() => {
            return Err(AuthorizationError::NoClientSecret { client_id: client_id.clone() });
        }
        (None, Some(client)) => (client.credential, client.auth_method),
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

/// Reports whether the operator or the user has registered the client that tokens were issued to: then no other
/// registration can take its place, and a client that the authorization server refuses is fixed there or in the
/// configuration.
pub(super) async fn is_registered_by_hand(
    options: &AuthorizationOptions,
    active: &ActiveTokens,
) -> Result<bool, AuthorizationError> {
    if configured_credential(options, active).is_some() {
        return Ok(true);
    }
    let registered = registered_client(options, active).await?;
    Ok(registered.is_some_and(|client| client.source != RegistrationSource::Dynamic))
}

/// Reports whether a configured credential is used in the way that is known of the client, which may have been a public
/// one before.
fn is_method_for(credential: &ClientCredential, known: &ClientRegistration) -> bool {
    let was_public =
        known.auth_method == TokenAuthMethod::None && known.credential == ClientCredential::Public;
    known.auth_method.fits(credential) && (!was_public || *credential == ClientCredential::Public)
}

/// Returns what the client authenticates with by the options, if they have it.
fn configured_credential<'a>(
    options: &'a AuthorizationOptions,
    active: &ActiveTokens,
) -> Option<&'a ClientCredential> {
    let (client_id, issuer) = (&active.key.client_id, &active.key.issuer);
    let is_it = |known: &&PreregisteredClient| {
        known.client_id == *client_id && known.issuer.as_ref().is_none_or(|own| own == issuer)
    };
    let preregistered = options.preregistered.iter().find(is_it).map(|known| &known.credential);
    let document = options.client_document.as_ref().filter(|document| document.url == *client_id);
    preregistered.or_else(|| document.map(|document| &document.credential))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trunkline_transport::Secret;

    use super::*;
    use crate::authorizer::AuthorizationGrant;
    use crate::jose::SigningKey;
    use crate::registration::ClientDocument;
    use crate::scopes::ScopeSet;
    use crate::token_set::{AccessTokenKind, TokenContext, TokenSet};
    use crate::token_store::{TokenGeneration, TokenKey};

    const ISSUER: &str = "https://as.example.com";
    const DOCUMENT: &str = "https://hub.example.com/client";

    fn secret(text: &str) -> ClientCredential {
        ClientCredential::Secret(Secret::new(text))
    }

    /// Returns tokens of a client.
    fn active(client_id: &str) -> ActiveTokens {
        let key = TokenKey {
            principal: "u".to_owned(),
            server_url: "https://server.example.com/mcp".to_owned(),
            issuer: ISSUER.to_owned(),
            client_id: client_id.to_owned(),
            account: None,
        };
        let tokens = TokenSet {
            access_token: Secret::new("a"),
            kind: AccessTokenKind::Bearer,
            refresh_token: None,
            issued_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            granted: ScopeSet::default(),
            dpop_key: None,
            user: None,
            context: TokenContext {
                issuer: ISSUER.to_owned(),
                token_endpoint: format!("{ISSUER}/token"),
                revocation_endpoint: None,
                client_id: client_id.to_owned(),
                resource: None,
                requested: ScopeSet::default(),
            },
        };
        ActiveTokens::new(key, tokens, TokenGeneration::ABSENT, None).unwrap()
    }

    fn registration(credential: ClientCredential, auth_method: TokenAuthMethod) -> ClientRegistration {
        ClientRegistration {
            issuer: ISSUER.to_owned(),
            client_id: "c".to_owned(),
            credential,
            auth_method,
            source: RegistrationSource::Preregistered,
            redirect_uri: None,
            secret_expires_at: None,
        }
    }

    #[tokio::test]
    async fn configured_credential_wins_over_the_stored_one() {
        use TokenAuthMethod::{ClientSecretPost, None as NoMethod};
        let old = || registration(secret("old"), ClientSecretPost);
        let public = || registration(ClientCredential::Public, NoMethod);
        let post = |text: &str| ClientAuthentication::new("c", &secret(text), ClientSecretPost);
        let by_default = ClientAuthentication::new("c", &secret("new"), TokenAuthMethod::ClientSecretBasic);
        let none = ClientAuthentication::Public { client_id: "c".to_owned() };
        for (case, configured, stored, expected) in [
            ("replaced secret", Some((None, secret("new"))), Some(old()), Ok(post("new"))),
            ("not stored", Some((None, secret("new"))), Some(old().without_secret()), Ok(post("new"))),
            ("was public", Some((None, secret("new"))), Some(public()), Ok(by_default.clone())),
            ("nothing stored", Some((Some(ISSUER), secret("new"))), None, Ok(by_default)),
            ("another issuer", Some((Some("https://b"), secret("new"))), Some(old()), Ok(post("old"))),
            ("not configured", None, Some(old()), Ok(post("old"))),
            ("not known", None, Some(old().without_secret()), Err(())),
            ("public", None, Some(public()), Ok(none.clone())),
            ("nothing at all", None, None, Ok(none)),
        ] {
            let mut options = AuthorizationOptions::with_grant(AuthorizationGrant::ClientCredentials);
            if let Some((issuer, credential)) = configured {
                let issuer = issuer.map(str::to_owned);
                options.preregistered.push(PreregisteredClient {
                    issuer,
                    client_id: "c".to_owned(),
                    credential,
                });
            }
            if let Some(stored) = stored {
                options.store.save_client(&stored).await.unwrap();
            }
            let found = client_authentication(&options, &active("c")).await;
            let found = found.map_err(|error| {
                assert!(matches!(error, AuthorizationError::NoClientSecret { .. }), "{case}: {error}");
            });
            assert_eq!(found, expected, "{case}");
        }
    }

    #[tokio::test]
    async fn client_of_a_document_signs_with_the_configured_key() {
        let mut options = AuthorizationOptions::with_grant(AuthorizationGrant::ClientCredentials);
        let document = ClientDocument::new(DOCUMENT, ClientCredential::PrivateKey).unwrap();
        options.client_document = Some(document);
        let refused = client_authentication(&options, &active(DOCUMENT)).await;
        assert!(matches!(refused, Err(AuthorizationError::NoClientKey)), "{refused:?}");
        let key = SigningKey::generate_es256().unwrap();
        options.client_key = Some(Arc::new(SigningKey::from_pkcs8(&key, None).unwrap()));
        let client = client_authentication(&options, &active(DOCUMENT)).await.unwrap();
        assert!(matches!(client, ClientAuthentication::Assertion { .. }), "{client:?}");
        let client = client_authentication(&options, &active("c")).await.unwrap();
        assert!(matches!(client, ClientAuthentication::Public { .. }), "another client: {client:?}");
    }
}
