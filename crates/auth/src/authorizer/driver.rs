use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use trunkline_session::Timestamp;

use super::dpop_key::{DPOP, DpopKey};
use super::error::AuthorizationError;
use super::random_bytes;
use crate::authorization_request::AuthorizationPage;
use crate::callback::{AuthorizationCallback, CallbackError};
use crate::client_assertion::ClientAssertion;
use crate::fetch::Fetcher;
use crate::flow::{AssertionRequest, AuthorizationFlow, FlowAction, FlowFailure, FlowFetch, FlowOutcome};
use crate::jose::SigningKey;
use crate::user_agent::{PreparedRedirect, UserAgentError};

/// How long a user may take for a login.
const USER_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Redirects that belong to another authorization, after which a login fails.
const MAX_FOREIGN_REDIRECTS: usize = 16;

/// Performs the actions of an [`AuthorizationFlow`].
pub(super) struct FlowDriver<'a> {
    pub(super) fetcher: &'a Fetcher,
    pub(super) dpop: Option<&'a DpopKey>,
    /// The client's own key, for `private_key_jwt`.
    pub(super) client_key: Option<&'a SigningKey>,
    pub(super) redirect: Option<Box<dyn PreparedRedirect>>,
    /// Counts the flows that wait for a user.
    pub(super) waiting_for_user: &'a AtomicUsize,
}

impl FlowDriver<'_> {
    /// Runs a flow to its end.
    pub(super) async fn run(
        mut self,
        mut flow: AuthorizationFlow,
    ) -> Result<FlowOutcome, AuthorizationError> {
        loop {
            match flow.next()? {
                FlowAction::Fetch(fetch) => self.fetch(&mut flow, *fetch).await?,
                FlowAction::OpenPage(page) => self.ask_user(&mut flow, &page).await?,
                FlowAction::NeedAssertion(request) => {
                    let assertion = self.sign_assertion(&request)?;
                    flow.on_assertion(assertion)?;
                }
                FlowAction::Done(outcome) => return Ok(*outcome),
            }
        }
    }

    async fn fetch(&self, flow: &mut AuthorizationFlow, fetch: FlowFetch) -> Result<(), AuthorizationError> {
        let mut request = fetch.request;
        if let Some(proof) = fetch.proof {
            let key = self.dpop.ok_or(AuthorizationError::Signing)?;
            let proof = key.proof(request.method(), request.uri(), None, proof.nonce.as_deref())?;
            request.headers_mut().insert(DPOP, proof);
        }
        tracing::debug!(purpose = ?fetch.purpose, url = %crate::endpoint_url::redacted(&request.uri().to_string()), "authorization request");
        match self.fetcher.fetch(request).await {
            Ok(response) => flow.on_response(&response, SystemTime::now())?,
            Err(error) => flow.on_fetch_failed(error, SystemTime::now())?,
        }
        Ok(())
    }

    /// Sends the user to the page and waits for the redirect of this authorization.
    async fn ask_user(
        &mut self,
        flow: &mut AuthorizationFlow,
        page: &AuthorizationPage,
    ) -> Result<(), AuthorizationError> {
        let unavailable = || UserAgentError::Unavailable("it has no user agent".to_owned());
        let mut redirect = self.redirect.take().ok_or_else(unavailable)?;
        let _waiting = WaitingForUser::new(self.waiting_for_user);
        redirect.open_page(page)?;
        let receiving = async {
            for _ in 0..MAX_FOREIGN_REDIRECTS {
                let received = redirect.receive().await?;
                match flow.on_callback(&AuthorizationCallback::from_url(&received)) {
                    Err(error) if *error.failure() == FlowFailure::Callback(CallbackError::StateMismatch) => {
                        tracing::debug!("a redirect of another authorization was ignored");
                    }
                    outcome => return Ok(outcome?),
                }
            }
            Err(UserAgentError::Cancelled.into())
        };
        tokio::time::timeout(USER_TIMEOUT, receiving).await.unwrap_or(Err(AuthorizationError::UserTimedOut))
    }

    fn sign_assertion(
        &self,
        request: &AssertionRequest,
    ) -> Result<trunkline_transport::Secret, AuthorizationError> {
        let key = self.client_key.ok_or(AuthorizationError::NoClientKey)?;
        let assertion =
            ClientAssertion { client_id: &request.client_id, issuer: &request.audience, key_id: None };
        let now = Timestamp::from_system(SystemTime::now());
        assertion.sign(key, &random_bytes()?, now).map_err(|_| AuthorizationError::Signing)
    }
}

/// Counts one flow that waits for a user, until dropped.
struct WaitingForUser<'a>(&'a AtomicUsize);

impl<'a> WaitingForUser<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for WaitingForUser<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Marks a header value as secret.
pub(super) fn sensitive(text: &str) -> Result<HeaderValue, AuthorizationError> {
    let mut value = HeaderValue::try_from(text).map_err(|_| AuthorizationError::Signing)?;
    value.set_sensitive(true);
    Ok(value)
}
