//! Scripted servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use trunkline_transport::Url;
use trunkline_transport::dial::{DialOptions, Dialer, ProxySettings};
use trunkline_transport::http::{HeaderLines, HttpClient, HttpClientOptions, HttpRequest};

/// A hang is a failure; nothing here takes a second.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// What a server does with one connection, given its number.
pub(crate) async fn serve<F, R>(script: F) -> Url
where
    F: Fn(usize, TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(script(number, stream));
        }
    });
    format!("http://{address}/mcp").parse().unwrap()
}

/// Reads one request, head and body, and returns it as text; empty if the client left.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    loop {
        if let Some(head) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            let length = String::from_utf8_lossy(&text[..head])
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if text.len() >= head + 4 + length {
                return String::from_utf8(text).unwrap();
            }
        }
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            return String::new();
        }
        text.push(byte[0]);
    }
}

pub(crate) async fn write(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Everything that a server saw.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(crate) fn push(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn direct() -> Dialer {
    dialer(ProxySettings::none())
}

pub(crate) fn dialer(proxies: ProxySettings) -> Dialer {
    let mut options = DialOptions::default();
    options.proxies = proxies;
    Dialer::new(options)
}

pub(crate) fn client(url: &Url) -> HttpClient {
    HttpClient::new(direct(), url.clone(), &HttpClientOptions::default())
}

pub(crate) fn post(client: &HttpClient, url: &Url, body: &'static str) -> HttpRequest {
    HttpRequest {
        method: http::Method::POST,
        target: client.target(url).unwrap(),
        headers: HeaderLines::default(),
        body: body.into(),
    }
}
