use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use trunkline_client::{BoxFuture, Builder, Client, Error};
use trunkline_config::{Reach, ServerConfig, Text};
use trunkline_hub::{Connector, Dial};
use trunkline_server::{Handler, Host};

use super::own::{OWN, Own};
use super::within;
use crate::terminal::visible_line;

/// Connects to what trunkline has itself, in memory, and to servers as their configuration says; each command line is told
/// before it is started.
#[derive(Default)]
pub(super) struct Wiring {
    dial: Dial,
    own: Mutex<Option<Own>>,
    /// What the programs that are started are told of the hubs that they are within.
    within: String,
    /// Where this hub is served, if that is an address.
    address: OnceLock<SocketAddr>,
}

impl Wiring {
    pub(super) fn new(within: String) -> Self {
        Self { within, ..Self::default() }
    }

    pub(super) fn own(&self) -> MutexGuard<'_, Option<Own>> {
        self.own.lock()
    }

    /// Notes where this hub is served.
    pub(super) fn set_address(&self, address: SocketAddr) {
        // It is served at one address only.
        let _ = self.address.set(address);
    }

    fn host_of(&self, server: &ServerConfig) -> Option<Host> {
        (server.name == OWN).then(|| self.own().as_ref().map(|own| own.host.clone())).flatten()
    }
}

impl Connector for Wiring {
    fn connect(&self, server: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>> {
        if let Some(host) = self.host_of(server) {
            return Box::pin(builder.connect(host));
        }
        let mut server = server.clone();
        let line = server.reach.to_string();
        match &mut server.reach {
            Reach::Program(program) => {
                tracing::info!(server = %server.name, "starting {}", visible_line(&line));
                program.env.insert(within::VARIABLE.to_owned(), Text::new(&*self.within));
            }
            Reach::Endpoint(endpoint) => {
                tracing::info!(server = %server.name, "connecting to {}", visible_line(&line));
                if let Some(here) = self.address.get().copied() {
                    let url = endpoint.url.clone();
                    let connecting = self.dial.connect(&server, builder);
                    return Box::pin(async move {
                        if within::is_here(url.expose(), here).await {
                            return Err(Error::Invalid("it is this hub itself".to_owned()));
                        }
                        connecting.await
                    });
                }
            }
        }
        self.dial.connect(&server, builder)
    }

    fn in_process(&self, server: &ServerConfig) -> Option<Arc<dyn Handler>> {
        if server.name != OWN {
            return None;
        }
        self.own().as_ref().map(|own| -> Arc<dyn Handler> { Arc::new(own.handle.clone()) })
    }
}
