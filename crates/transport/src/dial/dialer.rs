use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

use super::error::{DialError, Stage};
use super::proxy::{Proxies, Proxy};
use super::stream::Stream;
use super::tcp;
use super::tls::Tls;
use super::tunnel;
use crate::url::Url;

/// How servers are reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialOptions {
    /// The time for everything before a request can be written: name, connection, proxy and TLS. 10 s.
    pub connect_timeout: Duration,
    /// Which proxies are used; those that the environment names.
    pub proxies: Proxies,
    /// A PEM file of certificate authorities that are trusted beside those of the machine; none.
    pub extra_roots: Option<PathBuf>,
}

impl Default for DialOptions {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), proxies: Proxies::default(), extra_roots: None }
    }
}

/// Opens connections to servers; clones share what was found out about whom to trust.
#[derive(Clone, Debug)]
pub struct Dialer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    connect_timeout: Duration,
    proxies: Proxies,
    tls: Tls,
}

/// How a connection came about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Route {
    /// The address that took the connection, which is the proxy's if there is one.
    pub address: SocketAddr,
    /// The proxy that the connection goes through.
    pub proxy: Option<String>,
    /// The time that looking up the name took.
    pub resolving: Duration,
    /// The time that connecting took.
    pub connecting: Duration,
    /// The time that TLS took, and its version.
    pub tls: Option<(Duration, &'static str)>,
}

/// What requests on a connection have to look like.
pub(crate) enum Form {
    /// The request line has the path alone.
    Origin,
    /// The request line has the whole address, since a proxy reads it, and the proxy's credentials go with each.
    Proxied(Proxy),
}

/// Tells whether a proxy may read the requests or has to give a tunnel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tunnel {
    /// Only for what is encrypted.
    Encrypted,
    /// For everything, since what follows are no requests.
    Always,
}

impl Dialer {
    /// Makes a dialler.
    pub fn new(options: DialOptions) -> Self {
        let DialOptions { connect_timeout, proxies, extra_roots } = options;
        Self { shared: Arc::new(Shared { connect_timeout, proxies, tls: Tls::new(extra_roots) }) }
    }

    /// Opens a connection to the host of an address, through a tunnel where there is a proxy, and tells how.
    ///
    /// # Errors
    /// The server cannot be reached, be it in time or at all.
    pub async fn dial(&self, url: &Url) -> Result<(Stream, Route), DialError> {
        self.open(url, Tunnel::Always).await.map(|(stream, route, _)| (stream, route))
    }

    pub(crate) async fn open(&self, url: &Url, tunnel: Tunnel) -> Result<(Stream, Route, Form), DialError> {
        let waited = self.shared.connect_timeout;
        let clock = Clock { deadline: Instant::now() + waited, waited };
        let proxy = self.shared.proxies.choose(url)?;
        let (host, port) = proxy.map_or((url.host(), url.port()), |proxy| (&*proxy.host, proxy.port));
        let begun = Instant::now();
        let addresses = clock.within(Stage::Resolve, tcp::resolve(host, port)).await?;
        let resolved = Instant::now();
        let mut stream = clock.within(Stage::Connect, tcp::connect(host, &addresses)).await?;
        let form = match proxy {
            None => Form::Origin,
            Some(proxy) if tunnel == Tunnel::Always || url.scheme().is_encrypted() => {
                let authority = format!("{}:{}", bracketed(url.host()), url.port());
                let opening = async { Ok(tunnel::open(&mut stream, proxy, &authority).await?) };
                clock.within(Stage::Proxy, opening).await?;
                Form::Origin
            }
            Some(proxy) => Form::Proxied(proxy.clone()),
        };
        let mut route = Route {
            address: peer(&stream, host)?,
            proxy: proxy.map(Proxy::name),
            resolving: resolved - begun,
            connecting: resolved.elapsed(),
            tls: None,
        };
        if !url.scheme().is_encrypted() {
            return Ok((Stream::plain(stream), route, form));
        }
        let begun = Instant::now();
        let stream = clock.within(Stage::Tls, self.shared.tls.handshake(stream, url.host())).await?;
        let version = stream.get_ref().1.protocol_version().and_then(|version| version.as_str());
        route.tls = Some((begun.elapsed(), version.unwrap_or("TLS")));
        Ok((Stream::tls(stream), route, form))
    }
}

impl Default for Dialer {
    fn default() -> Self {
        Self::new(DialOptions::default())
    }
}

/// The time that all stages have together.
struct Clock {
    deadline: Instant,
    waited: Duration,
}

impl Clock {
    async fn within<T>(
        &self,
        stage: Stage,
        work: impl Future<Output = Result<T, DialError>>,
    ) -> Result<T, DialError> {
        let waited = self.waited;
        tokio::time::timeout_at(self.deadline, work)
            .await
            .unwrap_or(Err(DialError::TimedOut { stage, waited }))
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn peer(stream: &TcpStream, host: &str) -> Result<SocketAddr, DialError> {
    stream
        .peer_addr()
        .map_err(|source| DialError::Connect { host: format!("{host} ({source})"), failures: Vec::new() })
}
