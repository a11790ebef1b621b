use std::sync::Arc;

use futures_util::future::FutureExt as _;
use trunkline_client::authorization::{
    AuthorizationOptions, Authorizer, BrowserUserAgent, ClientStorage, PasteUserAgent, TokenStore,
    UnattendedUserAgent, UserAgent,
};
use trunkline_client::transport::Url;
use trunkline_client::transport::dial::Dialer;
use trunkline_config::{AuthKind, ServerAuth};
use trunkline_hub::apply_server_auth;

use super::offered_login::OfferedLogin;
use super::read_line::read_line;
use super::store::{LOGIN_PRINCIPAL, open_or_warn};
use super::target::LoginTarget;
use crate::exit::CliFailure;
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
    let mut options = user_options(agent, store);
    if let Err(failure) = apply_configured(target.auth.as_ref(), &mut options) {
        screen.print(&format!("warning: {}\n", escape_line(&failure.to_string())));
    }
    options
}

/// Applies what the configuration of a server has for its users' logins. The secret of a configured client stays there
/// alone, so that it counts when it was replaced.
fn apply_configured(auth: Option<&ServerAuth>, options: &mut AuthorizationOptions) -> Result<(), CliFailure> {
    let Some(auth) = auth.filter(|auth| matches!(auth.kind, AuthKind::Auto | AuthKind::User)) else {
        return Ok(());
    };
    apply_server_auth(options, auth).map_err(CliFailure::configuration)?;
    if auth.client_id.is_some() {
        options.client_storage = ClientStorage::WithoutSecret;
    }
    Ok(())
}

/// Returns the options of this user's logins.
pub(super) fn user_options(agent: impl UserAgent, store: Arc<dyn TokenStore>) -> AuthorizationOptions {
    let mut options = AuthorizationOptions::code_flow(agent).with_store(store);
    options.principal = LOGIN_PRINCIPAL.to_owned();
    options.client_storage = ClientStorage::WithSecret;
    options
}

/// Returns what logs in to a server and out of it.
///
/// # Errors
/// The configured private key of the client cannot be used.
pub(crate) fn authorizer(
    target: &LoginTarget,
    agent: impl UserAgent,
    store: Arc<dyn TokenStore>,
    configure: impl FnOnce(&mut AuthorizationOptions),
) -> Result<Authorizer, CliFailure> {
    let mut options = user_options(agent, store);
    apply_configured(target.auth.as_ref(), &mut options)?;
    configure(&mut options);
    Ok(Authorizer::new(options, &target.url, Dialer::default()))
}

/// Returns what ends the logins of a user of a hub at a server, as the client that the configuration has for it.
///
/// # Errors
/// The configured private key of the client cannot be used.
pub(crate) fn user_authorizer(
    principal: &str,
    url: &Url,
    auth: Option<&ServerAuth>,
    store: Arc<dyn TokenStore>,
) -> Result<Authorizer, CliFailure> {
    let agent = UnattendedUserAgent::new("a user logs in through the hub".to_owned());
    let mut options = AuthorizationOptions::code_flow(agent).with_store(store);
    options.principal = principal.to_owned();
    apply_configured(auth, &mut options)?;
    Ok(Authorizer::new(options, url, Dialer::default()))
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
