use std::fmt;
use std::io;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::{PreparedRedirect, UserAgent, UserAgentError};

/// The redirect URI if none is registered. Nothing listens there: the browser shows an error, and the user copies the URL.
const REDIRECT_URI: &str = "http://127.0.0.1:33418/callback";

/// Shows a page to the user and reads the URL that the browser was redirected to.
type PageReader = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<String>> + Send + Sync>;

/// For machines without a browser: the user opens the page elsewhere and pastes the URL of the redirect.
///
/// After the login the browser tries to open an address that does not answer there; the address line then has the URL.
#[derive(Clone)]
pub struct PasteUserAgent {
    read: PageReader,
    port: Option<u16>,
}

impl PasteUserAgent {
    /// Calls `read` with the URL of the page, which returns what the user entered.
    pub fn new(
        read: impl Fn(String) -> BoxFuture<'static, io::Result<String>> + Send + Sync + 'static,
    ) -> Self {
        Self { read: Arc::new(read), port: None }
    }

    /// Uses the redirect URI `http://127.0.0.1:PORT/callback`, for clients with a registered port.
    #[must_use]
    pub fn on_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }
}

impl fmt::Debug for PasteUserAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasteUserAgent")
    }
}

impl UserAgent for PasteUserAgent {
    fn prepare<'a>(
        &'a self,
        registered: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        let uri = match self.port {
            Some(port) => format!("http://127.0.0.1:{port}/callback"),
            None => registered.unwrap_or(REDIRECT_URI).to_owned(),
        };
        let redirect = PastedRedirect { uri, read: self.read.clone(), page: String::new() };
        async move { Ok(Box::new(redirect) as Box<dyn PreparedRedirect>) }.boxed()
    }
}

struct PastedRedirect {
    uri: String,
    read: PageReader,
    page: String,
}

impl fmt::Debug for PastedRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PastedRedirect").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl PreparedRedirect for PastedRedirect {
    fn redirect_uri(&self) -> &str {
        &self.uri
    }

    fn open(&mut self, page: &str) -> Result<(), UserAgentError> {
        page.clone_into(&mut self.page);
        Ok(())
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<String, UserAgentError>> {
        let reading = (self.read)(self.page.clone());
        async move {
            let entered = reading.await.map_err(UserAgentError::Input)?;
            match entered.trim() {
                "" => Err(UserAgentError::Cancelled),
                entered => Ok(entered.to_owned()),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pasted_url_is_the_redirect_and_an_empty_line_cancels() {
        for (entered, expected) in [(" http://127.0.0.1:33418/callback?code=c \n", true), ("\n", false)] {
            let agent = PasteUserAgent::new(move |page| {
                assert_eq!(page, "https://as.example/authorize");
                async move { Ok(entered.to_owned()) }.boxed()
            });
            let mut prepared = agent.prepare(None).await.unwrap();
            assert_eq!(prepared.redirect_uri(), REDIRECT_URI);
            prepared.open("https://as.example/authorize").unwrap();
            let redirect = prepared.receive().await;
            assert_eq!(redirect.ok().as_deref(), expected.then_some(entered.trim()));
        }
        let agent = PasteUserAgent::new(|_| async { Ok(String::new()) }.boxed());
        assert_eq!(
            agent.prepare(Some("http://127.0.0.1:9/cb")).await.unwrap().redirect_uri(),
            "http://127.0.0.1:9/cb"
        );
    }
}
