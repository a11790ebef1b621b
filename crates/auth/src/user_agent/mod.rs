//! How a user is sent to an authorization page, and how the answer comes back.
//!
//! The authorization code flow needs a *user agent* (RFC 6749 §1.1), usually a browser. [`BrowserUserAgent`] opens the
//! system's browser and receives the redirect on the loopback interface (RFC 8252); [`PasteUserAgent`] is for machines
//! without a browser. A program can implement [`UserAgent`] itself, for example to show the page in a window of its own.

mod browser;
mod loopback;
mod paste;
mod unattended;

use std::fmt;
use std::io;

use futures_util::future::BoxFuture;

pub use self::browser::BrowserUserAgent;
pub use self::paste::PasteUserAgent;
pub use self::unattended::UnattendedUserAgent;
use crate::authorization_request::AuthorizationPage;
use crate::scopes::ScopeSet;

/// Sends a user to an authorization page and returns the redirect.
pub trait UserAgent: Send + Sync + fmt::Debug + 'static {
    /// Prepares one authorization and chooses its redirect URI.
    ///
    /// `registered` is the redirect URI that the client is registered with at the authorization server, if it is: an
    /// implementation uses it again if it can, and else the client is registered again.
    ///
    /// # Errors
    /// The redirect cannot be received.
    fn prepare<'a>(
        &'a self,
        registered: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>>;

    /// Prepares an authorization of which scopes are known already, since the server refused a token that lacks them.
    /// By default as [`prepare`](Self::prepare).
    ///
    /// # Errors
    /// The redirect cannot be received.
    fn prepare_for_scopes<'a>(
        &'a self,
        registered: Option<&'a str>,
        _scopes: &'a ScopeSet,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        self.prepare(registered)
    }
}

/// One authorization that is ready to begin.
pub trait PreparedRedirect: Send + Sync + fmt::Debug {
    /// Returns the redirect URI.
    fn redirect_uri(&self) -> &str;

    /// Shows a page to the user.
    ///
    /// # Errors
    /// The page cannot be shown.
    fn open(&mut self, page: &str) -> Result<(), UserAgentError>;

    /// Shows a page to the user, with what is known of it. By default only its URL is used.
    ///
    /// # Errors
    /// The page cannot be shown.
    fn open_page(&mut self, page: &AuthorizationPage) -> Result<(), UserAgentError> {
        self.open(&page.url)
    }

    /// Waits for the next redirect and returns its URL, with its query.
    ///
    /// A redirect may belong to another authorization, since any page can send a browser to a port of this machine: then
    /// this is called again. Dropping the future ends the authorization.
    ///
    /// # Errors
    /// No redirect came.
    fn receive(&mut self) -> BoxFuture<'_, Result<String, UserAgentError>>;
}

/// Why a user could not be sent to an authorization page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserAgentError {
    /// No port on the loopback interface can be opened for the redirect.
    #[error("no port on 127.0.0.1 can be opened for the redirect: {0}")]
    Listen(#[source] io::Error),
    /// The input ended before the redirect was there.
    #[error("no redirect URL was entered: {0}")]
    Input(#[source] io::Error),
    /// The user cancelled.
    #[error("the authorization was cancelled")]
    Cancelled,
    /// There is no user who could be sent anywhere.
    #[error("this program cannot open a page for the user: {0}")]
    Unavailable(String),
}
