//! Logins at the servers of a running hub, for the admin socket.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use trunkline_hub::{LoginAudience, LoginLink, ManageError};
use trunkline_server::session::Principal;

use super::Gateway;
use super::admin_requests::failure_response;
use crate::admin::{AdminFailure, AdminFailureKind, AdminResponse};

/// The links that can be waited for at the same time; beyond it the oldest is dropped.
const MAX_LINKS: usize = 16;

/// The links that were made for the user of this machine, oldest first.
#[derive(Debug, Default)]
pub(super) struct LocalLinks(Mutex<VecDeque<Arc<LoginLink>>>);

impl Gateway {
    /// Makes a link at which the user of this machine logs in to a server.
    pub(super) async fn make_login_link(&self, server: &str) -> AdminResponse {
        if self.logins().audience() != LoginAudience::LocalUser {
            let what = "the running hub has users, who log in through their own clients".to_owned();
            return login_failed(what);
        }
        // The owner of the socket is the user of the hub.
        let link = match self.hub().login_link(server, &Principal::Process).await {
            Ok(link) => Arc::new(link),
            Err(error) => return failure_response(error),
        };
        let url = link.url().to_owned();
        let mut links = self.inner.login_links.0.lock();
        links.retain(|known| known.url() != url);
        if links.len() >= MAX_LINKS {
            links.pop_front();
        }
        links.push_back(link);
        AdminResponse::LoginLink(url)
    }

    /// Waits until the login at a link is complete.
    pub(super) async fn await_login(&self, url: &str) -> AdminResponse {
        let known = self.inner.login_links.0.lock().iter().find(|link| link.url() == url).cloned();
        let Some(link) = known else { return login_failed("there is no such link".to_owned()) };
        let finished = link.finished().await;
        self.inner.login_links.0.lock().retain(|known| known.url() != url);
        finished.map_or_else(login_failed, |()| AdminResponse::Done)
    }

    /// Connects to a server with the tokens that are stored for it now.
    pub(super) async fn reload_tokens(&self, server: &str) -> Result<(), ManageError> {
        self.hub().authorized(server)?;
        self.hub().connect(server).await
    }

    /// Removes the stored tokens of a user, and closes the user's connections.
    pub(super) async fn revoke_user(&self, user: &str, server: Option<&str>) -> AdminResponse {
        let principal = Principal::Named(user.into());
        let Some(stored) = self.logins().stored_principal(&principal) else {
            return AdminResponse::Revoked(0);
        };
        match self.hub().revoke_user(&stored, server).await {
            Ok(count) => {
                tracing::info!(user, server, count, "the logins of a user were ended");
                if let Some(audit) = self.inner.audit.get() {
                    audit.write_ended_logins(&stored, server);
                }
                AdminResponse::Revoked(count)
            }
            Err(error) => {
                let kind = AdminFailureKind::Unavailable;
                AdminResponse::Failed(AdminFailure { kind, what: error.to_string() })
            }
        }
    }
}

fn login_failed(what: String) -> AdminResponse {
    AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::Login, what })
}
