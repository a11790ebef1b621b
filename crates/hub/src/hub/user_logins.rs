//! Logins of users, as the program that runs the hub manages them.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::join_all;
use trunkline_auth::token_store::{TokenKey, TokenStore, TokenStoreError};
use trunkline_config::ServerName;
use trunkline_session::Principal;

use super::{Hub, HubInner, ManageError};
use crate::login::LoginProgress;
use crate::upstream::{Upstream, UpstreamConnectionState, UpstreamStatus};

/// A link for a user to log in to a server.
#[derive(Debug)]
pub struct LoginLink {
    url: String,
    link: Arc<crate::login::ConnectLink>,
}

impl LoginLink {
    /// Returns the URL to open, once and within ten minutes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits until the user has logged in.
    ///
    /// # Errors
    /// The reason for which the login failed.
    pub async fn finished(&self) -> Result<(), String> {
        match self.link.finished().await {
            LoginProgress::Done => Ok(()),
            LoginProgress::Failed(reason) => Err(reason),
            LoginProgress::Waiting => Err("the login did not end".to_owned()),
        }
    }
}

/// A login that is stored, without its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginSummary {
    /// The user, as [`Hub::revoke_user`] names it.
    pub user: String,
    /// The name of the user at the issuer, which was not verified.
    pub display_name: Option<String>,
    /// The configured servers that it is for.
    pub servers: Vec<ServerName>,
    /// The origin of the URL that it is for: the rest may have values of variables, which are often secrets.
    pub server_origin: String,
    /// The issuer of its tokens.
    pub issuer: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// When the access token expires, if that is known.
    pub expires_at: Option<SystemTime>,
    /// Whether a new access token can be had without the user.
    pub is_renewable: bool,
}

impl Hub {
    /// Returns the stored logins of all users, and whether there are more.
    ///
    /// # Errors
    /// The store failed.
    pub async fn stored_logins(&self, most: usize) -> Result<(Vec<LoginSummary>, bool), TokenStoreError> {
        let Some(logins) = &self.inner.options.logins else { return Ok((Vec::new(), false)) };
        let keys = logins.store().list_all().await?;
        let urls: Vec<_> =
            self.inner.servers().iter().map(|own| (own.name().clone(), own.token_url())).collect();
        let mut found = Vec::new();
        for key in keys.iter().take(most) {
            let Some(stored) = logins.store().load(key).await? else { continue };
            let tokens = stored.tokens;
            let named = urls.iter().filter(|(_, url)| url.as_ref() == Some(&key.server_url));
            found.push(LoginSummary {
                user: key.principal.clone(),
                display_name: tokens.user.clone(),
                servers: named.map(|(name, _)| name.clone()).collect(),
                server_origin: origin_of(&key.server_url),
                issuer: key.issuer.clone(),
                scopes: tokens.granted.iter().map(str::to_owned).collect(),
                expires_at: tokens.expires_at,
                is_renewable: tokens.refresh_token.is_some(),
            });
        }
        Ok((found, keys.len() > most))
    }

    /// Makes a link for a principal to log in to a server.
    ///
    /// # Errors
    /// There is no such server, or its users do not log in.
    pub async fn login_link(&self, name: &str, principal: &Principal) -> Result<LoginLink, ManageError> {
        let server = self.find_server(name)?;
        let own = server.of_user(principal).unwrap_or(server);
        let unavailable = |reason: &str| {
            let (server, reason) = (own.name().clone(), reason.to_owned());
            Err(ManageError::Unavailable { server, reason, source: None })
        };
        if !own.can_log_in() {
            return unavailable("its users do not log in");
        }
        match own.connect_link(principal).await {
            Some((link, url)) => Ok(LoginLink { url, link }),
            None => unavailable("the hub has no page for a login"),
        }
    }

    /// Removes the stored tokens of a user, by the name that [`UserLogins::stored_principal`] returns: for one server,
    /// or for all. Returns how many there were. Open connections of the user are closed.
    ///
    /// [`UserLogins::stored_principal`]: crate::UserLogins::stored_principal
    ///
    /// # Errors
    /// There is no such server, or the store failed.
    pub async fn revoke_user(&self, user: &str, server: Option<&str>) -> Result<usize, RevokeError> {
        let Some(logins) = &self.inner.options.logins else { return Ok(0) };
        let url = match server {
            Some(name) => Some(self.find_server(name)?.token_url()),
            None => None,
        };
        let store = logins.store();
        let mut removed = 0;
        for key in store.list(user).await? {
            if url.as_ref().is_some_and(|url| url.as_ref() != Some(&key.server_url)) {
                continue;
            }
            if remove_tokens(&**store, &key).await? {
                removed += 1;
            }
        }
        let servers = self.inner.servers().into_iter().chain(self.inner.users.upstreams());
        let theirs: Vec<_> =
            servers.filter(|own| own.account().is_some_and(|account| account.to_string() == user)).collect();
        join_all(theirs.iter().map(|own| async move {
            own.reload_tokens().await;
            own.authorized();
            own.restart_connections().await;
        }))
        .await;
        Ok(removed)
    }
}

/// Returns the scheme, host and port of a URL.
fn origin_of(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

/// Removes tokens, and reports whether there were any. A refresh or a login that replaces them at the same time does not
/// keep them.
async fn remove_tokens(store: &dyn TokenStore, key: &TokenKey) -> Result<bool, TokenStoreError> {
    let _lock = store.lock(key).await?;
    while let Some(stored) = store.load(key).await? {
        match store.remove(key, stored.generation).await {
            Err(TokenStoreError::Conflict) => {}
            removed => return removed.map(|()| true),
        }
    }
    Ok(false)
}

/// Why the tokens of a user could not be removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevokeError {
    /// There is no such server.
    #[error(transparent)]
    Server(#[from] ManageError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] TokenStoreError),
}

impl HubInner {
    /// Reports whether a server can be used after a login.
    pub(super) fn awaits_login(&self, name: &str) -> bool {
        self.server(name).is_some_and(|server| server.demands_login() || server.is_per_user())
    }

    /// Returns the status of a server, with the connections of all users: the best of their states counts.
    pub(super) fn status_for_operator(&self, server: &Arc<Upstream>) -> UpstreamStatus {
        let own = server.status();
        let users: Vec<_> =
            self.users.upstreams_of(server.name().as_str()).iter().map(|own| own.status()).collect();
        let rank = |status: &UpstreamStatus| match status.state {
            UpstreamConnectionState::Ready => 5,
            UpstreamConnectionState::Connecting => 4,
            UpstreamConnectionState::Pending => 3,
            UpstreamConnectionState::Failed => 2,
            _ => 1,
        };
        let Some(best) = users.iter().max_by_key(|status| rank(status)).cloned() else { return own };
        let all = || users.iter().chain([&own]);
        UpstreamStatus {
            connections: all().map(|status| status.connections).sum(),
            calls: all().map(|status| status.calls).sum(),
            waiting: all().map(|status| status.waiting).sum(),
            starts: all().map(|status| status.starts).sum(),
            ..best
        }
    }
}

#[cfg(test)]
mod tests {
    use super::origin_of;

    #[test]
    fn origin_of_a_url_has_neither_path_nor_credentials() {
        for (url, expected) in [
            ("https://mcp.example/key-1234/mcp?key=5678", "https://mcp.example"),
            ("https://ann:secret@mcp.example:8443", "https://mcp.example:8443"),
            ("http://[::1]:80?x", "http://[::1]:80"),
            ("", ""),
        ] {
            assert_eq!(origin_of(url), expected, "{url}");
        }
    }
}
