use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use trunkline_client::protocol::Revision;
use trunkline_client::transport::{ChannelOpener, Target, memory};
use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{LocalProgram, RemoteEndpoint, ServerConfig, ServerLocation, ServerName, StartMode};
use trunkline_hub::{AnonymousClients, Connector, Hub, HubLimits, HubOptions};
use trunkline_server::{Host, HostOptions, Server, ServerHandle, Shutdown};
use trunkline_session::Principal;

/// Servers in this process by their names, each of which can be slow, dead or replaced.
#[derive(Clone, Default)]
pub(crate) struct TestServers {
    houses: Arc<Mutex<HashMap<String, ServerSlot>>>,
}

#[derive(Clone)]
struct ServerSlot {
    target: Result<Target, String>,
    shutdown: Option<Shutdown>,
    pin: Option<Revision>,
    /// Whether every client is accepted.
    door: watch::Sender<bool>,
    visits: Arc<AtomicUsize>,
    guests: Arc<AtomicUsize>,
}

/// One connection to a server, for as long as it is there.
struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    fn enter(guests: &Arc<AtomicUsize>) -> Self {
        guests.fetch_add(1, Ordering::SeqCst);
        Self(guests.clone())
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl TestServers {
    /// Adds a server of one revision.
    pub(crate) fn add_server(&self, name: &str, server: &Server, pin: Revision) -> ServerHandle {
        let handle = server.handle().unwrap();
        self.house(name, &handle, pin);
        handle
    }

    fn house(&self, name: &str, handle: &ServerHandle, pin: Revision) {
        let options = HostOptions::default();
        let shutdown = options.shutdown.clone();
        let host = Host::new(handle.clone(), options).unwrap();
        let guests =
            self.houses.lock().unwrap().get(name).map(|house| house.guests.clone()).unwrap_or_default();
        let counted = guests.clone();
        let opener = ChannelOpener::new(name, move || {
            let (ours, theirs) = memory(64);
            let (host, guest) = (host.clone(), ConnectionCount::enter(&counted));
            tokio::spawn(async move {
                let _ = host.serve_channel(ours, Principal::Process).await;
                drop(guest);
            });
            std::future::ready(Ok(theirs))
        });
        self.put(name, Ok(opener.into()), Some(shutdown), Some(pin));
        self.houses.lock().unwrap().get_mut(name).unwrap().guests = guests;
    }

    /// Lets something that opens channels live here.
    pub(crate) fn add_script(&self, name: &str, opener: ChannelOpener, pin: Revision) {
        self.put(name, Ok(opener.into()), None, Some(pin));
    }

    /// Adds a scripted server that is connected to in any era.
    pub(crate) fn add_script_of_any_era(&self, name: &str, opener: ChannelOpener) {
        self.put(name, Ok(opener.into()), None, None);
    }

    /// Makes connecting to a server fail, with this reason.
    pub(crate) fn set_unreachable(&self, name: &str, reason: &str) {
        self.put(name, Err(reason.to_owned()), None, None);
    }

    fn put(
        &self,
        name: &str,
        target: Result<Target, String>,
        shutdown: Option<Shutdown>,
        pin: Option<Revision>,
    ) {
        let mut houses = self.houses.lock().unwrap();
        let before = houses.get(name);
        let visits = before.map(|house| house.visits.clone()).unwrap_or_default();
        let door = before.map_or_else(|| watch::Sender::new(true), |house| house.door.clone());
        houses.insert(
            name.to_owned(),
            ServerSlot { target, shutdown, pin, door, visits, guests: Arc::default() },
        );
    }

    /// Ends every connection to a server; new ones are accepted.
    pub(crate) fn kill(&self, name: &str, handle: &ServerHandle) {
        let (shutdown, pin) = {
            let houses = self.houses.lock().unwrap();
            let house = houses.get(name).unwrap();
            (house.shutdown.clone().unwrap(), house.pin.unwrap())
        };
        shutdown.stop();
        self.house(name, handle, pin);
    }

    /// Makes new connections to a server wait.
    pub(crate) fn block_connections(&self, name: &str) {
        self.houses.lock().unwrap().get(name).unwrap().door.send_replace(false);
    }

    /// Accepts the waiting connections.
    pub(crate) fn allow_connections(&self, name: &str) {
        self.houses.lock().unwrap().get(name).unwrap().door.send_replace(true);
    }

    /// Returns how often a server was connected to.
    pub(crate) fn connection_count(&self, name: &str) -> usize {
        let houses = self.houses.lock().unwrap();
        houses.get(name).map_or(0, |house| house.visits.load(Ordering::SeqCst))
    }

    /// Reports whether a server has no connection.
    pub(crate) fn is_unconnected(&self, name: &str) -> bool {
        self.houses.lock().unwrap().get(name).is_none_or(|house| house.guests.load(Ordering::SeqCst) == 0)
    }

    /// Makes a hub with these servers.
    pub(crate) fn hub(&self) -> Hub {
        self.hub_within(quick())
    }

    pub(crate) fn hub_within(&self, limits: HubLimits) -> Hub {
        Hub::new(self.options(limits))
    }

    /// Makes a hub that takes clients without credentials for one person, or for strangers.
    pub(crate) fn hub_for(&self, anonymous: AnonymousClients, limits: HubLimits) -> Hub {
        Hub::new(HubOptions { anonymous, ..self.options(limits) })
    }

    /// Returns the options of a hub of these servers.
    pub(crate) fn options(&self, limits: HubLimits) -> HubOptions {
        HubOptions { connector: Arc::new(self.clone()), limits, ..HubOptions::default() }
    }
}

impl Connector for TestServers {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        let house = self.houses.lock().unwrap().get(server.name.as_str()).cloned();
        Box::pin(async move {
            let house = house.ok_or_else(|| Error::Invalid("nobody ever lived there".to_owned()))?;
            house.visits.fetch_add(1, Ordering::SeqCst);
            let _ = house.door.subscribe().wait_for(|is_open| *is_open).await;
            let builder = match house.pin {
                Some(pin) => builder.pin(pin),
                None => builder,
            };
            builder.connect(house.target.map_err(Error::Invalid)?).await
        })
    }
}

/// The bounds of a hub that takes its time over nothing.
pub(crate) fn quick() -> HubLimits {
    HubLimits {
        refresh_interval: Duration::from_millis(1),
        restart_delay: Duration::from_millis(5),
        max_restart_delay: Duration::from_millis(20),
        connection_wait_timeout: Duration::from_secs(30),
        first_list_timeout: Duration::from_secs(30),
        ..HubLimits::default()
    }
}

/// Describes a server with a URL, which the hub does not start.
pub(crate) fn remote(name: &str) -> ServerConfig {
    let location = ServerLocation::Endpoint(RemoteEndpoint::new("http://127.0.0.1:9/mcp"));
    let mut config = ServerConfig::new(ServerName::parse(name).unwrap(), location);
    config.start = StartMode::Eager;
    config
}

/// Describes a server that is started when it is first needed.
pub(crate) fn lazy(name: &str) -> ServerConfig {
    ServerConfig::new(ServerName::parse(name).unwrap(), ServerLocation::Program(LocalProgram::new(name)))
}

/// Describes a server that is there from the start.
pub(crate) fn eager(name: &str) -> ServerConfig {
    let mut config = lazy(name);
    config.start = StartMode::Eager;
    config
}
