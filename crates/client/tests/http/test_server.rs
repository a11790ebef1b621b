//! Places where the real server is: by each transport, with and without TLS, behind proxies.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use trunkline_client::transport::dial::{DialOptions, Dialer, ProxySettings};
use trunkline_client::{Client, ClientBuilder};
use trunkline_server::http::{HttpServerOptions, HttpService, ServerTls, serve};
use trunkline_server::{Host, HostOptions, ServerHandle};

use crate::DEADLINE;
use crate::server::{Life, server};

/// The real server, listening.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
    pub(crate) endpoint: HttpService,
    pub(crate) parts: ServerHandle,
    pub(crate) life: Life,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(HttpServerOptions::default()).await
    }

    pub(crate) async fn start_with(options: HttpServerOptions) -> Self {
        let life = Life::default();
        let parts = server(&life).handle().unwrap();
        let host = Host::new(parts.clone(), HostOptions::default()).unwrap();
        let endpoint = host.http_service(options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = endpoint.clone();
        tokio::spawn(async move { serve(listener, &served, served.clone(), DEADLINE).await });
        Self { address, host, endpoint, parts, life }
    }

    pub(crate) fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.address)
    }

    /// Waits until no call runs or waits, and no channel stands.
    pub(crate) async fn wait_idle(&self) {
        crate::within(async {
            while self.host.load() != (0, 0) || self.endpoint.channels() != 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Begins a client without a proxy, whatever the environment variables are.
pub(crate) fn direct() -> ClientBuilder {
    through(ProxySettings::none())
}

/// Begins a client that goes through these proxies.
pub(crate) fn through(proxies: ProxySettings) -> ClientBuilder {
    let mut options = DialOptions::default();
    options.proxies = proxies;
    Client::builder().dialer(Dialer::new(options))
}

/// A certificate for `localhost` in files of its own, which are removed with it.
pub(crate) struct Certificate {
    folder: PathBuf,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("trunkline-client-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        let key = folder.join("key.pem");
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&key, mode).unwrap();
        Self { folder }
    }

    /// Returns the server's side of TLS.
    pub(crate) fn tls(&self) -> ServerTls {
        ServerTls::from_pem_files(&self.folder.join("cert.pem"), &self.folder.join("key.pem")).unwrap()
    }

    /// Begins a client that trusts it.
    pub(crate) fn trusting(&self, proxies: ProxySettings) -> ClientBuilder {
        let mut options = DialOptions::default();
        options.proxies = proxies;
        options.extra_roots = Some(self.folder.join("cert.pem"));
        Client::builder().dialer(Dialer::new(options))
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A proxy that opens tunnels and passes plain requests on, and counts both.
pub(crate) struct TestProxy {
    address: SocketAddr,
    pub(crate) tunnels: Arc<AtomicUsize>,
    pub(crate) requests: Arc<AtomicUsize>,
}

impl TestProxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tunnels, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (tunnels.clone(), requests.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, counts.clone()));
            }
        });
        Self { address, tunnels, requests }
    }

    pub(crate) fn proxies(&self) -> ProxySettings {
        ProxySettings::all(&format!("http://{}", self.address)).unwrap()
    }
}

/// Passes on what comes over one connection. The server closes it after each request, since the next one may be for
/// another server.
async fn pass(mut client: TcpStream, (tunnels, requests): (Arc<AtomicUsize>, Arc<AtomicUsize>)) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    if method == "CONNECT" {
        tunnels.fetch_add(1, Ordering::SeqCst);
        let mut there = TcpStream::connect(target).await.unwrap();
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        let _ = copy_bidirectional(&mut client, &mut there).await;
    } else {
        requests.fetch_add(1, Ordering::SeqCst);
        let (authority, path) = target.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut there = TcpStream::connect(authority).await.unwrap();
        let own = head.replacen(target, &format!("/{path}"), 1);
        let own = own.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1);
        there.write_all(own.as_bytes()).await.unwrap();
        let _ = copy_bidirectional(&mut client, &mut there).await;
    }
}
