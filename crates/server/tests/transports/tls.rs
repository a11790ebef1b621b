//! TLS under the listener.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use trunkline_server::ServerLimits;
use trunkline_server::http::{HttpServerOptions, ServerTls, ServerTlsError};

use crate::http_client::{send_over, to};
use crate::service::{Service, modern, within};

/// A certificate for `localhost` in files of its own, which are removed with it.
struct Files {
    folder: PathBuf,
    der: CertificateDer<'static>,
}

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("trunkline-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut files = Self { folder, der: CertificateDer::from(Vec::new()) };
        files.issue();
        files
    }

    /// Replaces the certificate and its key by new ones.
    fn issue(&mut self) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        self.der = made.cert.der().clone();
        std::fs::write(self.path("cert.pem"), made.cert.pem()).unwrap();
        self.write_private("key.pem", &made.signing_key.serialize_pem());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write_private(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn tls(&self) -> Result<ServerTls, ServerTlsError> {
        ServerTls::from_pem_files(&self.path("cert.pem"), &self.path("key.pem"))
    }

    async fn connect(&self, service: &Service) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let stream = TcpStream::connect(service.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn service(files: &Files) -> Service {
    let options = HttpServerOptions { tls: Some(files.tls().unwrap()), ..HttpServerOptions::default() };
    let limits = ServerLimits { head_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    Service::start_with(options, limits).await
}

#[tokio::test]
async fn endpoint_and_channels_are_served_over_tls() {
    let files = Files::new("served");
    let service = service(&files).await;
    let stream = files.connect(&service).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let request = to(service.address, "POST", "/mcp")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "server/discover");
    let message = modern(1, "server/discover", json!({})).to_string();
    let response = send_over(stream, request, message).await;
    assert_eq!(response.status(), 200);
    let body = response.collect().await.unwrap().to_bytes();
    assert!(std::str::from_utf8(&body).unwrap().contains("2026-07-28"));

    let stream = files.connect(&service).await;
    let (_, response) = tokio_tungstenite::client_async("wss://localhost/ws", stream).await.unwrap();
    assert_eq!(response.status(), 101);
}

#[tokio::test]
async fn half_closed_tls_connection_is_probed_and_its_call_cancelled_once_the_client_is_gone() {
    let files = Files::new("half-closed");
    let options = HttpServerOptions { tls: Some(files.tls().unwrap()), ..HttpServerOptions::default() };
    let limits = ServerLimits { stream_after: Duration::from_secs(600), ..ServerLimits::default() };
    let service = Service::start_with(options, limits).await;
    let message = modern(1, "tools/call", json!({ "name": "wait" })).to_string();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
                text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: wait\r\n";
    let mut stream = files.connect(&service).await;
    let request = format!("{head}Content-Length: {}\r\n\r\n{message}", message.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    service.waiting.are(1).await;
    stream.shutdown().await.unwrap();
    let mut seen = vec![0; b"HTTP/1.1 100 Continue\r\n\r\n".len() * 2];
    within(stream.read_exact(&mut seen)).await.unwrap();
    assert_eq!(seen, b"HTTP/1.1 100 Continue\r\n\r\n".repeat(2));
    service.waiting.are(1).await;
    drop(stream);
    service.waiting.are(0).await;
}

#[tokio::test]
async fn failed_or_slow_tls_handshake_is_disconnected() {
    let files = Files::new("slow");
    let service = service(&files).await;
    let mut silent = TcpStream::connect(service.address).await.unwrap();
    let mut nothing = Vec::new();
    within(silent.read_to_end(&mut nothing)).await.unwrap();
    assert_eq!(nothing, b"");
    let mut plain = TcpStream::connect(service.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut plain, b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = within(plain.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn invalid_tls_files_report_the_reason() {
    let files = Files::new("wrong");
    let other = Files::new("other");
    files.write_private("empty.pem", "");
    files.write_private("public-key.pem", "");
    let (cert, key, empty) = (files.path("cert.pem"), files.path("key.pem"), files.path("empty.pem"));
    std::fs::copy(&cert, files.path("exposed.pem")).unwrap();
    let exposed = files.path("exposed.pem");
    let missing = files.path("missing.pem");
    for (cert, key, expected) in [
        (&cert, &key, "fine"),
        (&missing, &key, "cannot be read"),
        (&cert, &missing, "cannot be read"),
        (&cert, &exposed, "chmod 600"),
        (&empty, &key, "holds no certificate"),
        (&cert, &empty, "holds no private key"),
        (&cert, &other.path("key.pem"), "cannot be used"),
    ] {
        let said = ServerTls::from_pem_files(cert, key)
            .map_or_else(|error| error.to_string(), |_| "fine".to_owned());
        assert!(said.contains(expected), "{said}, not {expected}");
    }
}

#[tokio::test]
async fn idle_tls_connection_is_closed_with_close_notify_when_draining() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let files = Files::new("ended");
    let service = service(&files).await;
    let mut stream = files.connect(&service).await;
    stream.write_all(b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(within(stream.read(&mut [0; 1000])).await.unwrap() > 0);
    service.host.shutdown().drain();
    // Without `close_notify` the end could be a truncation attack, and this would be an error.
    within(stream.read_to_end(&mut Vec::new())).await.unwrap();
}

/// Sends a request on an open connection and reads its status line.
async fn ping(stream: &mut TlsStream<TcpStream>) -> String {
    use tokio::io::AsyncWriteExt as _;
    stream.write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 4096];
    let length = within(stream.read(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn reloaded_certificate_is_used_for_new_connections_and_old_ones_continue() {
    let mut files = Files::new("reloaded");
    let tls = files.tls().unwrap();
    let options = HttpServerOptions { tls: Some(tls.clone()), ..HttpServerOptions::default() };
    let service = Service::start_with(options, ServerLimits::default()).await;
    let reload = |files: &Files| tls.reload(&files.path("cert.pem"), &files.path("key.pem"));
    let mut before = files.connect(&service).await;
    assert!(!reload(&files).unwrap(), "nothing has changed");
    let first = files.der.clone();
    files.issue();
    assert!(reload(&files).unwrap());
    let mut after = files.connect(&service).await;
    let shown = |stream: &TlsStream<TcpStream>| stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!((shown(&before), shown(&after)), (first, files.der.clone()));
    for stream in [&mut before, &mut after] {
        assert!(ping(stream).await.starts_with("HTTP/1.1 404"));
    }
    // A certificate without its key changes nothing.
    files.write_private("key.pem", "-----BEGIN");
    assert!(reload(&files).is_err());
    assert!(ping(&mut files.connect(&service).await).await.starts_with("HTTP/1.1 404"));
}
