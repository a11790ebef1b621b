use std::net::SocketAddr;
use std::sync::Arc;

use trunkline_console::{Console, ConsoleCaller, ConsoleOptions, ConsoleRole, ConsoleSource};
use trunkline_server::http::Authenticator;
use trunkline_server::session::Principal;

use super::PreparedService;

/// The web console of a hub, and where it may be served.
pub(super) struct HubConsole(Option<Console>);

impl HubConsole {
    /// Makes the console of a hub, unless it is switched off. Until a page is open, no message is copied for it.
    ///
    /// Its operators call as the principal of all clients where none is authenticated, and otherwise as `process`, which no
    /// token can name: only the operator of the hub gets a link.
    pub(super) fn new(serving: &PreparedService<'_>, authenticator: &dyn Authenticator) -> Self {
        let principal = authenticator.fixed_principal().unwrap_or(Principal::Process);
        let gateway = serving.gateway().filter(|_| serving.has_console);
        let console = gateway.map(|gateway| {
            let console = Console::new(ConsoleOptions {
                source: ConsoleSource::Live(gateway.hub().events().clone()),
                reports: Arc::new(gateway.console_servers()),
                caller: Some(ConsoleCaller { host: serving.host.downgrade(), principal }),
                controls: Some(Arc::new(gateway.console_servers())),
                shutdown: serving.shutdown.shutdown().clone(),
                version: env!("CARGO_PKG_VERSION"),
            });
            gateway.set_console(console.clone());
            console
        });
        Self(console)
    }

    /// Returns the console for the MCP address: only on the loopback, which no other machine reaches.
    pub(super) fn on_main(&self, address: SocketAddr, has_tls: bool) -> Option<Console> {
        self.serve_at(address, address.ip().is_loopback(), has_tls)
    }

    /// Returns the console for the `--admin` address: off the loopback only where callers are authenticated.
    pub(super) fn on_admin(&self, address: SocketAddr, has_auth: bool, has_tls: bool) -> Option<Console> {
        self.serve_at(address, address.ip().is_loopback() || has_auth, has_tls)
    }

    fn serve_at(&self, address: SocketAddr, permitted: bool, has_tls: bool) -> Option<Console> {
        let console = self.0.as_ref().filter(|_| permitted)?;
        let scheme = if has_tls { "https" } else { "http" };
        console.set_origin(&format!("{scheme}://{address}"));
        Some(console.clone())
    }

    /// Sets the URL of the MCP endpoint.
    pub(super) fn set_endpoint(&self, url: &str) {
        if let Some(console) = &self.0 {
            console.set_endpoint(url);
        }
    }

    /// Makes a link for the operator, if the console is served.
    pub(super) fn make_link(&self) -> Option<String> {
        self.0.as_ref()?.make_link(ConsoleRole::Operator)
    }
}
