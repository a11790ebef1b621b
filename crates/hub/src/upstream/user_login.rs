//! Upstreams with tokens that belong to users.
//!
//! Each user has an upstream of their own for such a server: its connections, listings, subscriptions and state are
//! shared with no other user. The upstream that all users share remains, without a token.
//!
//! Tokens are no part of the key of a pool, unlike the variables of a caller: each request gets one of its own, so that a
//! session outlives the token that it was opened with. What a call's own token was exchanged for goes with the call.
//!
//! # Invariants
//!
//! - Two users never share a token, a connection or a listing of such a server:
//!   `two_users_never_see_each_others_lists_tokens_or_subscriptions`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trunkline_auth::authorizer::CallerToken;
use trunkline_auth::user_agent::UserAgent;
use trunkline_client::Error;
use trunkline_config::AuthKind;
use trunkline_protocol::model::{Tool, ToolAnnotations};
use trunkline_server::Context;
use trunkline_session::Principal;

use super::status::requires_auth;
use super::{FailureKind, Upstream, UpstreamEvent};
use crate::login::{Account, ConnectLink, LoginAudience, LoginError, TokenSharing, caller_token, server_url};
use crate::registry::{LOGIN_TOOL, UpstreamListing};

impl Upstream {
    /// Returns the user that owns it.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.auth.account()
    }

    /// Reports whether each user has an upstream of their own in its place.
    pub(crate) fn is_per_user(&self) -> bool {
        let has_users =
            self.auth.logins().is_some_and(|logins| logins.audience() == LoginAudience::EachPrincipal);
        if !has_users || self.account().is_some() {
            return false;
        }
        let config = self.config.load();
        TokenSharing::of(&config) == TokenSharing::PerUser
            && (config.auth.kind != AuthKind::Auto || self.has_demanded_token.load(Ordering::Acquire))
    }

    /// Returns the upstream of a user, if this one stands for those of all users.
    pub(crate) fn of_user(&self, principal: &Principal) -> Option<Arc<Self>> {
        if self.is_per_user() { (self.find_user)(&self.name, principal) } else { None }
    }

    /// Reports whether its user can log in.
    pub(crate) fn can_log_in(&self) -> bool {
        self.auth.logins().is_some()
            && self.account().is_some()
            && TokenSharing::of(&self.config.load()) == TokenSharing::PerUser
            && !self.exchanges_tokens()
    }

    /// Reports whether it gets tokens in exchange for those of its callers.
    pub(crate) fn exchanges_tokens(&self) -> bool {
        self.config.load().auth.kind == AuthKind::TokenExchange
    }

    /// Uses the access token of its user's latest request for what belongs to no request, such as lists. A server that
    /// refused the one before is tried again, and after some time also with the same one.
    pub(crate) fn set_subject_token(&self, token: &CallerToken) {
        if self.auth.set_subject_token(token) && self.failure_kind() == Some(FailureKind::NeedsAuth) {
            self.authorized();
            self.begin_listing();
        }
    }

    /// Returns the token that a call to the server is made with in exchange, if it gets tokens in that way.
    pub(crate) fn caller_token(&self, context: &Context) -> Option<CallerToken> {
        if self.exchanges_tokens() { context.with_caller(caller_token) } else { None }
    }

    /// Reports whether its user has to log in before it can be used.
    pub(crate) fn demands_login(&self) -> bool {
        self.can_log_in() && self.failure_kind() == Some(FailureKind::NeedsAuth)
    }

    /// Records that the server has demanded a token, for which nothing is configured: from now on each user has their
    /// own.
    pub(crate) fn note_error(&self, error: &Error) {
        let demands = match error {
            Error::Unauthorized { status, challenge } => requires_auth(*status, challenge.as_deref()),
            _ => false,
        };
        if demands && !self.has_demanded_token.swap(true, Ordering::AcqRel) && self.is_per_user() {
            tracing::info!(server = %self.name, "demands a token; each user has to log in");
            (self.on_event)(UpstreamEvent::ListsChanged(super::ListSet::NONE));
        }
    }

    /// Logs the user in, and lets the server be tried again.
    ///
    /// # Errors
    /// A step of the authorization failed.
    pub(crate) async fn log_in(&self, agent: Arc<dyn UserAgent>) -> Result<(), LoginError> {
        let config = self.config.load_full();
        self.auth.log_in(&config, agent).await?;
        tracing::info!(server = %self.name, user = ?self.account(), "a user has logged in");
        self.authorized();
        // Its clients have waited for what it lists.
        self.begin_listing();
        Ok(())
    }

    /// Requests that the server is connected in the background to fetch its lists. List requests wait for that.
    pub(crate) fn begin_listing(&self) {
        self.update_state(|state| state.is_list_requested = true);
    }

    /// Returns the URL under which its tokens are stored.
    pub(crate) fn token_url(&self) -> Option<String> {
        server_url(&self.config.load()).ok().map(|url| url.to_full_string())
    }

    /// Uses the tokens that the store has now, after a login or a logout elsewhere. Reports whether there are other
    /// tokens than before.
    pub(crate) async fn reload_tokens(&self) -> bool {
        let Some(authorizer) = self.auth.current() else { return false };
        let is_new = authorizer.reload().await.unwrap_or_else(|error| {
            tracing::warn!(server = %self.name, %error, "the tokens of a user cannot be read");
            false
        });
        if is_new {
            self.authorized();
            self.begin_listing();
        }
        is_new
    }

    /// Returns a link for a caller to log in, and its URL; `None` if there is no page.
    pub(crate) async fn connect_link(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Option<(Arc<ConnectLink>, String)> {
        let logins = self.auth.logins()?;
        let account = logins.account_of(principal)?;
        // The tokens are those of this upstream's user.
        if self.account() != Some(&account) {
            return None;
        }
        let base_url = logins.base_url().await?;
        let link = logins.link_for(&account, principal, self)?;
        let url = link.url(&base_url);
        Some((link, url))
    }

    /// Returns the items of a server that its user has to log in to: a tool for that.
    pub(super) fn login_listing(&self) -> Arc<UpstreamListing> {
        let make = || {
            let schema = serde_json::json!({ "type": "object", "additionalProperties": false });
            let mut tool = Tool::new(LOGIN_TOOL, (&schema).into());
            let what = "Logs the user in to this server, which has no other tools before. The result is a link for the \
                        user to open, unless the user was sent there.";
            tool.description = Some(format!("Server {}: {what}", self.name));
            tool.annotations = Some(ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() });
            Arc::new(UpstreamListing { tools: Arc::new(vec![tool]), ..UpstreamListing::default() })
        };
        self.login_items.get_or_init(make).clone()
    }
}
