use std::sync::Arc;

use futures_util::future::FutureExt as _;
use trunkline_client::authorization::{
    AuthorizationOptions, Authorizer, BrowserUserAgent, PasteUserAgent, TokenStore, UnattendedUserAgent,
    UserAgent,
};
use trunkline_client::transport::Url;
use trunkline_client::transport::dial::Dialer;

use super::offered_login::OfferedLogin;
use super::read_line::read_line;
use super::store::{LOGIN_PRINCIPAL, open_or_warn};
use super::target::LoginTarget;
use crate::terminal::{StderrScreen, escape_line};

/// Whether a command offers a login that a server demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginOptions {
    /// At a terminal.
    Offer,
    /// Never.
    StoredOnly,
}

/// Returns the authorization of a client command: stored logins are used, and others offered.
pub(crate) fn authorization(
    target: &LoginTarget,
    offer: LoginOptions,
    screen: &Arc<StderrScreen>,
) -> AuthorizationOptions {
    let store = open_or_warn(target.config_file.as_deref(), |warning| {
        screen.print(&format!("warning: {}\n", escape_line(warning)));
    });
    let is_offered = offer == LoginOptions::Offer;
    let agent = OfferedLogin { target: target.clone(), screen: Arc::clone(screen), is_offered };
    user_options(agent, store)
}

/// Returns the options of this user's logins.
pub(super) fn user_options(agent: impl UserAgent, store: Arc<dyn TokenStore>) -> AuthorizationOptions {
    let mut options = AuthorizationOptions::code_flow(agent).with_store(store);
    options.principal = LOGIN_PRINCIPAL.to_owned();
    options.stores_client = true;
    options
}

/// Returns what logs in to a server and out of it.
pub(crate) fn authorizer(
    target: &LoginTarget,
    agent: impl UserAgent,
    store: Arc<dyn TokenStore>,
    configure: impl FnOnce(&mut AuthorizationOptions),
) -> Authorizer {
    let mut options = user_options(agent, store);
    configure(&mut options);
    Authorizer::new(options, &target.url, Dialer::default())
}

/// Returns what ends the logins of a user of a hub at a server.
pub(crate) fn user_authorizer(principal: &str, url: &Url, store: Arc<dyn TokenStore>) -> Authorizer {
    let agent = UnattendedUserAgent::new("a user logs in through the hub".to_owned());
    let mut options = AuthorizationOptions::code_flow(agent).with_store(store);
    options.principal = principal.to_owned();
    Authorizer::new(options, url, Dialer::default())
}

/// Opens the browser, and shows the URL of the page too, in case it does not open.
pub(crate) fn browser_agent(screen: &Arc<StderrScreen>, port: Option<u16>) -> BrowserUserAgent {
    let screen = Arc::clone(screen);
    let agent = BrowserUserAgent::new().on_page(move |page| {
        screen.print_always(&format!(
            "Log in in the browser; if it does not open, visit:\n  {}\nWaiting for the login. Ctrl-C cancels it.\n",
            escape_line(page)
        ));
    });
    match port {
        Some(port) => agent.on_port(port),
        None => agent,
    }
}

/// Shows the page, and reads the URL of the redirect.
pub(crate) fn paste_agent(screen: &Arc<StderrScreen>, port: Option<u16>) -> PasteUserAgent {
    let screen = Arc::clone(screen);
    let agent = PasteUserAgent::new(move |page| {
        screen.print_always(&format!(
            "Open this page in any browser, and log in:\n  {}\n\
             The browser then shows an error, since nothing listens at the address that it is sent to.\n\
             Paste that address here (an empty line cancels): ",
            escape_line(&page)
        ));
        read_line().boxed()
    });
    match port {
        Some(port) => agent.on_port(port),
        None => agent,
    }
}
