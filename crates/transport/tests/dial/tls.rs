use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use trunkline_transport::Url;
use trunkline_transport::dial::{DialOptions, Dialer, ProxySettings};
use trunkline_transport::http::{
    HeaderLines, HttpClient, HttpClientOptions, HttpError, HttpRequest, RequestDelivery,
};

use crate::scripted::{LONG, read_request, serve};

/// A server with a self-signed certificate, and the file that makes it trusted.
async fn server() -> (Url, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = std::env::temp_dir().join(format!("trunkline-dial-{}.pem", unique()));
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let url = serve(move |_, stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            while !read_request(&mut stream).await.is_empty() {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            }
        }
    })
    .await;
    (format!("https://localhost:{}/mcp", url.port()).parse().unwrap(), file)
}

/// What no other call in this run and no other run on this machine is given.
fn unique() -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn get(url: &Url, extra_roots: Option<PathBuf>) -> Result<Bytes, HttpError> {
    let mut options = DialOptions::default();
    options.proxies = ProxySettings::none();
    options.extra_roots = extra_roots;
    let client = HttpClient::new(Dialer::new(options), url.clone(), &HttpClientOptions::default());
    let request = HttpRequest {
        method: http::Method::GET,
        target: client.target(url).unwrap(),
        headers: HeaderLines::default(),
        body: Vec::new(),
    };
    client.send(&request).await?.body.read_all(10).await
}

#[tokio::test]
async fn server_certificate_is_trusted_only_with_the_extra_roots() {
    let (url, file) = server().await;
    assert_eq!(get(&url, Some(file.clone())).await.unwrap(), "ok");
    let error = get(&url, None).await.unwrap_err();
    assert_eq!(error.delivery(), RequestDelivery::NotSent);
    assert!(
        error.to_string().starts_with("TLS with `localhost` failed: ")
            || error.to_string().starts_with("no certificate authorities"),
        "{error}"
    );
    // The certificate is for the name, and the address has another.
    let other: Url = format!("https://127.0.0.1:{}/mcp", url.port()).parse().unwrap();
    let error = get(&other, Some(file.clone())).await.unwrap_err();
    assert!(error.to_string().starts_with("TLS with `127.0.0.1` failed: "), "{error}");
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn roots_file_without_certificates_is_reported() {
    let url: Url = serve(|_, _| async {}).await;
    let url: Url = url.to_full_string().replace("http://", "https://").parse().unwrap();
    let empty = std::env::temp_dir().join(format!("trunkline-dial-empty-{}", unique()));
    std::fs::write(&empty, "no certificate").unwrap();
    for (file, expected) in
        [(empty.clone(), "there is no certificate in it"), ("/nonexistent.pem".into(), "/nonexistent.pem")]
    {
        let error = get(&url, Some(file)).await.unwrap_err().to_string();
        assert!(
            error.starts_with("no certificate authorities to trust: ") && error.contains(expected),
            "{error}"
        );
    }
    std::fs::remove_file(empty).unwrap();
}

#[tokio::test]
async fn request_buffered_by_tls_is_flushed() {
    let (url, file) = server().await;
    // One task may do only so much in one turn, and then what it writes stays within TLS until the next.
    let requests = (0..100).map(|_| get(&url, Some(file.clone())));
    for body in timeout(LONG, futures_util::future::join_all(requests)).await.unwrap() {
        assert_eq!(body.unwrap(), "ok");
    }
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn https_to_a_plain_http_port_suggests_http() {
    let (_, file) = server().await;
    let plain = serve(|_, mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        // Until the client leaves, so that a reset does not overtake the response.
        while !matches!(stream.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {}
    })
    .await;
    let url: Url = format!("https://localhost:{}/mcp", plain.port()).parse().unwrap();
    let error = get(&url, Some(file.clone())).await.unwrap_err().to_string();
    assert!(error.contains("does not use TLS on this port; try `http://`"), "{error}");
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn name_that_resolves_to_this_machine_allows_nothing_without_its_certificate() {
    let (url, file) = server().await;
    let mut options = DialOptions::default();
    options.proxies = ProxySettings::none();
    options.extra_roots = Some(file);
    let dialer = Dialer::new(options);
    let near = async |url: String| dialer.policy_near(&url.parse().unwrap()).await;
    let own = "127.0.0.1".parse().unwrap();
    // `127.1` resolves like a name whose owner has it point here.
    for (scheme, host, is_allowed) in [
        ("https", "localhost", true),
        ("http", "localhost", true),
        ("https", "127.0.0.1", true),
        ("https", "[::1]", true),
        ("https", "127.1", false),
        ("http", "127.1", false),
        ("https", "8.8.8.8", false),
        ("https", "169.254.169.254", false),
        ("https", "name.invalid", false),
    ] {
        let policy = near(format!("{scheme}://{host}:{}/mcp", url.port())).await;
        assert_eq!(policy.allows(own), is_allowed, "{scheme}://{host}");
        assert!(!policy.allows("169.254.169.254".parse().unwrap()), "{scheme}://{host}");
    }
}
