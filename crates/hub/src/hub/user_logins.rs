//! Logins of users, as the program that runs the hub manages them.

use std::sync::Arc;

use futures_util::future::join_all;
use trunkline_auth::token_store::{TokenKey, TokenStore, TokenStoreError};
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

impl Hub {
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
