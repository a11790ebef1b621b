use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use trunkline_client::authorization::{PreparedRedirect, ScopeSet, UserAgent, UserAgentError};
use trunkline_client::transport::Url;

use super::options::browser_agent;
use super::read_line::{has_terminal, read_line};
use super::target::LoginTarget;
use crate::terminal::{StderrScreen, escape_line};

/// Offers a login while a command runs: at a terminal the user decides; without one the command fails.
#[derive(Debug)]
pub(super) struct OfferedLogin {
    pub(super) target: LoginTarget,
    pub(super) screen: Arc<StderrScreen>,
    pub(super) is_offered: bool,
}

impl UserAgent for OfferedLogin {
    fn prepare<'a>(
        &'a self,
        registered: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        async move {
            if !self.is_possible() {
                return Err(UserAgentError::Unavailable(self.target.command()));
            }
            let browser = browser_agent(&self.screen, None).prepare(registered).await?;
            let offered = OfferedRedirect {
                browser,
                server: self.target.typed.clone(),
                screen: Arc::clone(&self.screen),
                page: None,
            };
            Ok(Box::new(offered) as Box<dyn PreparedRedirect>)
        }
        .boxed()
    }

    fn prepare_for_scopes<'a>(
        &'a self,
        registered: Option<&'a str>,
        scopes: &'a ScopeSet,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        if self.is_possible() {
            return self.prepare(registered);
        }
        let command = self.target.command_for_scopes(scopes);
        std::future::ready(Err(UserAgentError::Unavailable(command))).boxed()
    }
}

impl OfferedLogin {
    fn is_possible(&self) -> bool {
        self.is_offered && has_terminal()
    }
}

/// A login that begins when the user agrees.
#[derive(Debug)]
struct OfferedRedirect {
    browser: Box<dyn PreparedRedirect>,
    server: String,
    screen: Arc<StderrScreen>,
    /// The page, until the user has agreed to open it.
    page: Option<String>,
}

impl PreparedRedirect for OfferedRedirect {
    fn redirect_uri(&self) -> &str {
        self.browser.redirect_uri()
    }

    fn open(&mut self, page: &str) -> Result<(), UserAgentError> {
        self.page = Some(page.to_owned());
        Ok(())
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<String, UserAgentError>> {
        async move {
            if let Some(page) = self.page.take() {
                let host = page.parse::<Url>().map(|url| url.authority()).unwrap_or_default();
                self.screen.print_always(&format!(
                    "{} requires a login at {}. Open the browser now? [Y/n] ",
                    escape_line(&self.server),
                    escape_line(&host)
                ));
                let answer = read_line().await.map_err(UserAgentError::Input)?;
                if !matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes") {
                    return Err(UserAgentError::Cancelled);
                }
                self.browser.open(&page)?;
            }
            self.browser.receive().await
        }
        .boxed()
    }
}
