use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_auth::authorization_request::AuthorizationPage;
use trunkline_auth::sign_in::{SignInClient, SignInRequest};
use trunkline_session::Principal;
use trunkline_transport::Secret;

use super::account::Account;
use super::login_flow::RunningFlow;
use crate::upstream::Upstream;

/// How long a link can be opened and its login completed.
pub(super) const LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// The wrong tokens, or sign-ins of other users, after which a link is not valid any more.
const MAX_WRONG_TOKENS: u8 = 5;

/// A link to the page on which one user logs in to one server.
#[derive(Debug)]
pub(crate) struct ConnectLink {
    /// 256 random bits.
    pub(super) id: Secret,
    /// Names it to clients, in place of the secret id.
    elicitation_id: String,
    pub(super) account: Account,
    /// The principal that has to open it.
    pub(super) principal: Principal,
    pub(super) upstream: Weak<Upstream>,
    pub(super) created: Instant,
    pub(super) stage: Mutex<LinkStage>,
    pub(super) wrong_tokens: Mutex<u8>,
    progress: watch::Sender<LoginProgress>,
}

/// How far a login has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoginProgress {
    Waiting,
    Done,
    Failed(String),
}

/// What was done with a link.
#[derive(Debug)]
pub(super) enum LinkStage {
    /// It was not opened yet by its principal.
    Fresh,
    /// The browser is at the issuer of its user's principal, to prove that it belongs to that user.
    SigningIn(Arc<RunningSignIn>),
    /// The page requests consent.
    Consent(Arc<ConsentRequest>),
    /// The user is at the authorization server.
    Authorizing(Arc<ConsentRequest>),
    /// It cannot be used any more.
    Used,
}

/// A sign-in by which the opener of a link proves to be its principal.
#[derive(Debug)]
pub(super) struct RunningSignIn {
    pub(super) client: Arc<SignInClient>,
    pub(super) request: SignInRequest,
    /// Binds it to the browser.
    pub(super) browser: BrowserCookie,
}

/// The cookie of the browser that shows a page.
#[derive(Debug)]
pub(super) struct BrowserCookie {
    pub(super) name: String,
    pub(super) value: Secret,
    pub(super) is_secure: bool,
}

impl BrowserCookie {
    /// Draws a cookie for pages at an address. With TLS its name has the prefix `__Host-`: a browser takes such a cookie
    /// from this very host only, so that a page of a neighbouring host cannot plant one that its author knows.
    pub(super) fn random(base_url: &str) -> Option<Self> {
        let id = random_secret()?;
        let is_secure = base_url.starts_with("https:");
        let prefix = if is_secure { "__Host-" } else { "" };
        let name = format!("{prefix}trunkline-{}", id.expose().get(..16).unwrap_or_default());
        Some(Self { name, value: random_secret()?, is_secure })
    }
}

/// A login that its user can consent to.
#[derive(Debug)]
pub(super) struct ConsentRequest {
    pub(super) page: AuthorizationPage,
    /// Binds it to the browser.
    pub(super) browser: BrowserCookie,
    /// A value of the form, which no other page knows.
    pub(super) form_key: Secret,
    /// The `state` of the authorization request.
    pub(super) state: Secret,
    /// The path at which its answer is taken.
    pub(super) callback_path: String,
    pub(super) flow: RunningFlow,
}

impl ConnectLink {
    pub(super) fn new(account: Account, principal: Principal, upstream: &Arc<Upstream>) -> Option<Self> {
        Some(Self {
            id: random_secret()?,
            elicitation_id: random_secret()?.expose().to_owned(),
            account,
            principal,
            upstream: Arc::downgrade(upstream),
            created: Instant::now(),
            stage: Mutex::new(LinkStage::Fresh),
            wrong_tokens: Mutex::default(),
            progress: watch::Sender::new(LoginProgress::Waiting),
        })
    }

    /// Returns its URL, at a hub with its pages at an address.
    pub(crate) fn url(&self, base_url: &str) -> String {
        format!("{base_url}{}{}", super::connect_page::CONNECT_PREFIX, self.id.expose())
    }

    /// Returns the id by which clients know the login.
    pub(crate) fn elicitation_id(&self) -> &str {
        &self.elicitation_id
    }

    /// Reports whether it can still be opened or completed.
    pub(super) fn is_valid(&self, now: Instant) -> bool {
        now.duration_since(self.created) < LINK_LIFETIME && !matches!(*self.stage.lock(), LinkStage::Used)
    }

    /// Reports whether it can be given to the user again.
    pub(super) fn is_reusable(&self, now: Instant) -> bool {
        let is_open =
            matches!(*self.stage.lock(), LinkStage::Fresh | LinkStage::SigningIn(_) | LinkStage::Consent(_));
        is_open && now.duration_since(self.created) < LINK_LIFETIME / 2
    }

    /// Counts a wrong token of its opener, or a sign-in as another user.
    pub(super) fn count_wrong_token(&self) {
        let mut wrong = self.wrong_tokens.lock();
        *wrong += 1;
        if *wrong >= MAX_WRONG_TOKENS {
            *self.stage.lock() = LinkStage::Used;
        }
    }

    pub(super) fn finish(&self, progress: LoginProgress) {
        *self.stage.lock() = LinkStage::Used;
        self.progress.send_replace(progress);
    }

    /// Waits until the login is complete or has failed; if it is not in time, it has failed.
    pub(crate) async fn finished(&self) -> LoginProgress {
        let mut progress = self.progress.subscribe();
        let finished = progress.wait_for(|progress| *progress != LoginProgress::Waiting);
        match tokio::time::timeout_at(self.created + LINK_LIFETIME, finished).await {
            Ok(Ok(progress)) => progress.clone(),
            _ => LoginProgress::Failed("the login was not completed within 10 minutes".to_owned()),
        }
    }
}

/// Draws 256 random bits.
pub(super) fn random_secret() -> Option<Secret> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}
