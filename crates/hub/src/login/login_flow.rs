//! The authorization of one login, which runs while its user is at the pages.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use trunkline_auth::authorization_request::AuthorizationPage;
use trunkline_auth::callback::AuthorizationCallback;
use trunkline_auth::user_agent::{PreparedRedirect, UserAgent, UserAgentError};
use trunkline_transport::Secret;

use super::connect_link::{BrowserCookie, ConnectLink, ConsentRequest, LoginProgress, random_secret};

/// The redirects of a login that wait to be read; a browser brings one.
const MAX_REDIRECTS: usize = 4;

/// An authorization that waits for its redirect. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct RunningFlow {
    redirects: mpsc::Sender<String>,
    task: AbortHandle,
}

impl Drop for RunningFlow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningFlow {
    /// Passes the URL of an authorization response on.
    pub(super) fn redirect(&self, url: String) {
        // One that comes after several others is of no use.
        let _ = self.redirects.try_send(url);
    }
}

/// Begins the authorization of a login, up to the page that its user has to open.
///
/// # Errors
/// A message for the user.
pub(super) async fn begin(link: &Arc<ConnectLink>, base_url: &str) -> Result<ConsentRequest, String> {
    let Some(upstream) = link.upstream.upgrade() else {
        return Err("the server is no longer configured".to_owned());
    };
    let no_random = || "the system has no random numbers".to_owned();
    let (opened, page) = oneshot::channel();
    let (redirects, received) = mpsc::channel(MAX_REDIRECTS);
    let callback_path = super::connect_page::callback_path(&upstream.config());
    let redirect_uri = format!("{base_url}{callback_path}");
    let prepared = ConnectRedirect { redirect_uri, opened: Some(opened), received };
    let agent = Arc::new(ConnectUserAgent(Mutex::new(Some(prepared))));
    let weak = Arc::downgrade(link);
    let task = tokio::spawn(async move {
        let progress = match upstream.log_in(agent).await {
            Ok(()) => LoginProgress::Done,
            Err(error) => {
                tracing::info!(server = %upstream.name(), %error, "a login failed");
                LoginProgress::Failed(error.to_string())
            }
        };
        if let Some(link) = weak.upgrade() {
            link.finish(progress);
        }
    });
    let flow = RunningFlow { redirects, task: task.abort_handle() };
    let Ok(page) = page.await else {
        // The flow failed before the user was needed, or found that no login is needed.
        return match link.finished().await {
            LoginProgress::Failed(reason) => Err(reason),
            LoginProgress::Done | LoginProgress::Waiting => Err("no login is needed any more".to_owned()),
        };
    };
    let state = AuthorizationCallback::from_url(&page.url).state().cloned();
    Ok(ConsentRequest {
        state: state.ok_or("the authorization request has no state")?,
        callback_path,
        browser: BrowserCookie::random(base_url).ok_or_else(no_random)?,
        form_key: random_secret().ok_or_else(no_random)?,
        page,
        flow,
    })
}

/// Sends the user of an authorization to the connect page.
#[derive(Debug)]
struct ConnectUserAgent(Mutex<Option<ConnectRedirect>>);

impl UserAgent for ConnectUserAgent {
    fn prepare<'a>(
        &'a self,
        _registered: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        // The user consents to one authorization only.
        let spent = || UserAgentError::Unavailable("the login has to be started again".to_owned());
        let prepared = self.0.lock().take().ok_or_else(spent);
        Box::pin(std::future::ready(prepared.map(|prepared| Box::new(prepared) as Box<dyn PreparedRedirect>)))
    }
}

#[derive(Debug)]
struct ConnectRedirect {
    redirect_uri: String,
    opened: Option<oneshot::Sender<AuthorizationPage>>,
    received: mpsc::Receiver<String>,
}

impl PreparedRedirect for ConnectRedirect {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn open(&mut self, _page: &str) -> Result<(), UserAgentError> {
        Err(UserAgentError::Unavailable("the page is not described".to_owned()))
    }

    fn open_page(&mut self, page: &AuthorizationPage) -> Result<(), UserAgentError> {
        let opened = self.opened.take().ok_or(UserAgentError::Cancelled)?;
        opened.send(page.clone()).map_err(|_| UserAgentError::Cancelled)
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<String, UserAgentError>> {
        Box::pin(async { self.received.recv().await.ok_or(UserAgentError::Cancelled) })
    }
}

/// Compares a value that a browser sent.
pub(super) fn is_secret(expected: &Secret, sent: &str) -> bool {
    *expected == Secret::new(sent)
}
