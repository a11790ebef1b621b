//! Logins of users at the servers behind the hub.
//!
//! A server that demands a token of a user is reached with the token of that user and of no other. The user gets it at a
//! *connect page* of the hub, by a link that a call is answered with: the page requests consent, sends the browser to
//! the authorization server, and receives its answer at one fixed address.
//!
//! # Invariants
//!
//! - A link is used once, for ten minutes at most, and only by the principal that it was made for:
//!   `connect_links_are_used_once_in_time_and_by_their_own_principal`.
//! - What came from a client, a server or an authorization server is escaped in a page:
//!   `pages_escape_all_that_they_show`.

mod account;
mod connect_link;
mod connect_links;
mod connect_page;
mod html;
mod login_flow;
mod opener_sign_in;
mod server_auth;
mod server_authorizer;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use trunkline_auth::sign_in::SignInClient;
use trunkline_auth::token_store::{MemoryTokenStore, TokenStore};
use trunkline_server::BoxFuture;
use trunkline_session::Principal;

pub(crate) use self::account::Account;
pub(crate) use self::connect_link::{ConnectLink, LoginProgress};
use self::connect_links::ConnectLinks;
pub use self::server_auth::apply_server_auth;
pub use self::server_authorizer::server_url;
pub(crate) use self::server_authorizer::{LoginError, ServerAuthorizer, TokenSharing, caller_token};

/// The users of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginAudience {
    /// All clients belong to the user of this machine, and no other machine can reach the hub. Connect pages open only on
    /// this machine.
    LocalUser,
    /// Each principal is a user. A connect page opens after its opener has proved to be the principal: by signing in at
    /// the issuer ([`UserLogins::set_sign_ins`]), or with the token that its client uses.
    EachPrincipal,
}

/// Lets users log in to the servers of a hub, and keeps their tokens.
///
/// Clones are the same. The program that serves the hub passes requests for the connect pages to
/// [`UserLogins::respond`].
#[derive(Clone)]
pub struct UserLogins {
    inner: Arc<LoginState>,
}

/// A reference to [`UserLogins`] that does not keep them alive.
#[derive(Clone, Debug)]
pub struct WeakLogins(Weak<LoginState>);

impl WeakLogins {
    /// Returns the logins, if they are still there.
    pub fn upgrade(&self) -> Option<UserLogins> {
        self.0.upgrade().map(|inner| UserLogins { inner })
    }
}

struct LoginState {
    store: Arc<dyn TokenStore>,
    audience: LoginAudience,
    /// Where the pages are served, without a trailing slash.
    base_url: OnceLock<String>,
    opener: OnceLock<Box<PageOpener>>,
    links: Mutex<ConnectLinks>,
    /// The clients with which openers of links sign in at the issuer of their principal.
    sign_ins: Mutex<Vec<Arc<SignInClient>>>,
}

/// Starts to serve the pages, and returns their address.
type PageOpener = dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync;

impl UserLogins {
    /// Keeps tokens in a store.
    pub fn new(audience: LoginAudience, store: Arc<dyn TokenStore>) -> Self {
        let inner = LoginState {
            store,
            audience,
            base_url: OnceLock::new(),
            opener: OnceLock::new(),
            links: Mutex::default(),
            sign_ins: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Keeps tokens in memory.
    pub fn in_memory(audience: LoginAudience) -> Self {
        Self::new(audience, Arc::new(MemoryTokenStore::default()))
    }

    /// Sets the address at which the pages are served, such as `https://hub.example.com`. Only the first one counts.
    pub fn set_base_url(&self, url: &str) {
        let _ = self.inner.base_url.set(url.trim_end_matches('/').to_owned());
    }

    /// Lets openers of connect pages prove to be a principal of an issuer by signing in there, with these clients. Their
    /// redirect URI is that of the pages, `…/oauth/callback`. Principals of other issuers prove it with the token that
    /// their client uses.
    pub fn set_sign_ins(&self, clients: Vec<SignInClient>) {
        *self.inner.sign_ins.lock() = clients.into_iter().map(Arc::new).collect();
    }

    /// Sets how the pages are made available when the first of them is needed, for a hub that is not served over HTTP.
    pub fn set_page_opener(
        &self,
        open: impl Fn() -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    ) {
        let _ = self.inner.opener.set(Box::new(open));
    }

    /// Returns a reference that does not keep the logins alive.
    pub fn downgrade(&self) -> WeakLogins {
        WeakLogins(Arc::downgrade(&self.inner))
    }

    /// Returns the users of the hub.
    pub fn audience(&self) -> LoginAudience {
        self.inner.audience
    }

    /// Returns the store of the tokens.
    pub fn store(&self) -> &Arc<dyn TokenStore> {
        &self.inner.store
    }

    /// Returns the name under which the tokens of a principal are stored; `None` for anonymous clients of a hub with
    /// many users, which cannot be distinguished.
    pub fn stored_principal(&self, principal: &Principal) -> Option<String> {
        self.account_of(principal).map(|account| account.to_string())
    }

    pub(crate) fn account_of(&self, principal: &Principal) -> Option<Account> {
        Account::of(self.inner.audience, principal)
    }

    /// Returns the address at which the pages are served, and makes them available if they are not.
    pub(crate) async fn base_url(&self) -> Option<String> {
        if let Some(url) = self.inner.base_url.get() {
            return Some(url.clone());
        }
        let url = self.inner.opener.get()?().await?;
        self.set_base_url(&url);
        self.inner.base_url.get().cloned()
    }
}

impl fmt::Debug for LoginState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginState").finish_non_exhaustive()
    }
}

impl fmt::Debug for UserLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserLogins").field("audience", &self.inner.audience).finish_non_exhaustive()
    }
}
