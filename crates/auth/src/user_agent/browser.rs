use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::loopback::LoopbackRedirect;
use super::{PreparedRedirect, UserAgent, UserAgentError};

/// Receives the URL of an authorization page, to show it.
type PageCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Opens the authorization page in the system's browser and receives the redirect on the loopback interface
/// (RFC 8252 §7.3).
#[derive(Clone, Default)]
pub struct BrowserUserAgent {
    on_page: Option<PageCallback>,
    is_browser_closed: bool,
    port: Option<u16>,
}

impl BrowserUserAgent {
    /// Opens the system's browser.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `on_page` with the URL of each page, for users who have to open it themselves.
    #[must_use]
    pub fn on_page(mut self, on_page: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_page = Some(Arc::new(on_page));
        self
    }

    /// Receives the redirect on this port only: the redirect URI is `http://127.0.0.1:PORT/callback`. For clients with a
    /// registered port.
    #[must_use]
    pub fn on_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Opens no browser; the user opens the URL that [`on_page`](Self::on_page) shows.
    #[must_use]
    pub fn without_browser(mut self) -> Self {
        self.is_browser_closed = true;
        self
    }
}

impl fmt::Debug for BrowserUserAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserUserAgent").field("opens_browser", &!self.is_browser_closed).finish()
    }
}

impl UserAgent for BrowserUserAgent {
    fn prepare<'a>(
        &'a self,
        registered: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        async move {
            let opened = match self.port {
                Some(port) => LoopbackRedirect::on_port(port).await,
                None => LoopbackRedirect::open(registered).await,
            };
            let redirect = opened.map_err(UserAgentError::Listen)?;
            Ok(Box::new(BrowserRedirect { redirect, agent: self.clone() }) as Box<dyn PreparedRedirect>)
        }
        .boxed()
    }
}

/// An authorization that waits for its redirect.
#[derive(Debug)]
struct BrowserRedirect {
    redirect: LoopbackRedirect,
    agent: BrowserUserAgent,
}

impl PreparedRedirect for BrowserRedirect {
    fn redirect_uri(&self) -> &str {
        self.redirect.uri()
    }

    fn open(&mut self, page: &str) -> Result<(), UserAgentError> {
        if let Some(on_page) = &self.agent.on_page {
            on_page(page);
        }
        if !self.agent.is_browser_closed
            && let Err(error) = trunkline_process::open_page(page)
        {
            tracing::warn!(%error, "the browser cannot be opened; open the authorization page by hand");
        }
        Ok(())
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<String, UserAgentError>> {
        async move { self.redirect.receive().await.map_err(UserAgentError::Listen) }.boxed()
    }
}
