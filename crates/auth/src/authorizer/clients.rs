//! The clients that the store and the options know.

use super::Authorizer;
use super::error::AuthorizationError;
use super::options::{AuthorizationGrant, ClientStorage};
use crate::registration::{ClientRegistration, PreregisteredClient, RegistrationSource};
use crate::token_store::TokenKey;

impl Authorizer {
    /// Returns the only issuer that is accepted, if there is one. The JWT of a workload is sent as it is, and its receiver could use it
    /// elsewhere: without a configured issuer it goes to the first that it got tokens from, so that a server
    /// which names another one later does not get it.
    pub(super) async fn bound_issuer(&self) -> Result<Option<String>, AuthorizationError> {
        match (&self.options.issuer, &self.options.grant) {
            (None, AuthorizationGrant::WorkloadIdentity(_)) => {
                Ok(self.known_issuers().await?.into_iter().next())
            }
            (issuer, _) => Ok(issuer.clone()),
        }
    }

    /// Returns the preregistered clients; one that names no issuer belongs to the first that it got tokens from, so that a
    /// server which names another one later does not get its secret. Without any, those that an earlier login has stored.
    pub(super) async fn bound_clients(&self) -> Result<Vec<PreregisteredClient>, AuthorizationError> {
        let keys = self.options.store.list(&self.options.principal).await?;
        let issuer_of = |client: &PreregisteredClient| {
            let is_its =
                |key: &&TokenKey| key.server_url == self.server_url && key.client_id == client.client_id;
            keys.iter().find(is_its).map(|key| key.issuer.clone())
        };
        let bind = |client: &PreregisteredClient| {
            let issuer = client.issuer.clone().or_else(|| issuer_of(client));
            PreregisteredClient { issuer, ..client.clone() }
        };
        if !self.options.preregistered.is_empty() {
            return Ok(self.options.preregistered.iter().map(bind).collect());
        }
        let is_used = |client: &ClientRegistration| {
            let is_its = |key: &TokenKey| key.issuer == client.issuer && key.client_id == client.client_id;
            client.source == RegistrationSource::Preregistered
                && !client.lacks_secret()
                && keys.iter().any(|key| key.server_url == self.server_url && is_its(key))
        };
        let stored = self.options.store.load_clients().await?.into_iter().filter(is_used);
        Ok(stored
            .map(|client| PreregisteredClient {
                issuer: Some(client.issuer),
                client_id: client.client_id,
                credential: client.credential,
            })
            .collect())
    }

    /// Returns what is stored of the client that tokens were issued to, if anything.
    pub(super) fn stored_form(&self, client: &ClientRegistration) -> Option<ClientRegistration> {
        match (client.source, self.options.client_storage) {
            (RegistrationSource::Dynamic, _)
            | (RegistrationSource::Preregistered, ClientStorage::WithSecret) => Some(client.clone()),
            (RegistrationSource::Preregistered, ClientStorage::WithoutSecret) => {
                Some(client.without_secret())
            }
            (RegistrationSource::Preregistered, ClientStorage::Nothing)
            | (RegistrationSource::ClientDocument, _) => None,
        }
    }

    /// Returns the issuers of earlier tokens for this server.
    pub(super) async fn known_issuers(&self) -> Result<Vec<String>, AuthorizationError> {
        let keys = self.options.store.list(&self.options.principal).await?;
        let own = keys.into_iter().filter(|key| key.server_url == self.server_url);
        Ok(own.map(|key| key.issuer).collect())
    }

    /// Removes the dynamic registrations at an issuer from the store, and reports whether there was one.
    pub(super) async fn forget_clients(&self, issuer: Option<&str>) -> Result<bool, AuthorizationError> {
        let store = &self.options.store;
        let is_stale = |client: &ClientRegistration| {
            client.source == RegistrationSource::Dynamic && Some(client.issuer.as_str()) == issuer
        };
        let mut clients = store.load_clients().await?;
        clients.retain(is_stale);
        for client in &clients {
            store.remove_client(&client.issuer, &client.client_id).await?;
        }
        Ok(!clients.is_empty())
    }

    /// Removes a preregistered client from the store that no other login uses.
    pub(super) async fn forget_unused_client(&self, ended: &TokenKey) -> Result<(), AuthorizationError> {
        let store = &self.options.store;
        let is_its = |issuer: &str, client_id: &str| issuer == ended.issuer && client_id == ended.client_id;
        let clients = store.load_clients().await?;
        let is_stored = clients.iter().any(|client| {
            client.source == RegistrationSource::Preregistered && is_its(&client.issuer, &client.client_id)
        });
        let is_used = async || -> Result<bool, AuthorizationError> {
            Ok(store.list_all().await?.iter().any(|key| is_its(&key.issuer, &key.client_id)))
        };
        if is_stored && !is_used().await? {
            store.remove_client(&ended.issuer, &ended.client_id).await?;
        }
        Ok(())
    }
}

/// Returns a redirect URI that was registered before, preferably at an issuer that this server is known to use.
pub(super) fn registered_redirect<'a>(
    registrations: &'a [ClientRegistration],
    known: &[String],
) -> Option<&'a str> {
    let is_known = |client: &&ClientRegistration| known.contains(&client.issuer);
    let first = registrations.iter().filter(is_known).chain(registrations);
    first.into_iter().find_map(|client| client.redirect_uri.as_deref())
}
