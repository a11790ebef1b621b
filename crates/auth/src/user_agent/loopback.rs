//! Receives the redirect of an authorization on the loopback interface (RFC 8252 §7.3).

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::BytesMut;
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline_http1::Url;
use trunkline_http1::server::take_request_head;

/// The path of the redirect URI.
const CALLBACK_PATH: &str = "/callback";

/// How long one connection may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that are read at once. A browser opens a few; other local programs may connect too.
const MAX_CONNECTIONS: usize = 16;

/// A port that waits for one redirect.
#[derive(Debug)]
pub(super) struct LoopbackRedirect {
    listener: TcpListener,
    uri: String,
}

impl LoopbackRedirect {
    /// Opens a port: that of the registered redirect URI if it is free, else any.
    pub(super) async fn open(registered: Option<&str>) -> io::Result<Self> {
        if let Some((uri, port)) = registered.and_then(|uri| Some((uri, loopback_port(uri)?)))
            && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
        {
            return Ok(Self { listener, uri: uri.to_owned() });
        }
        Self::on_port(0).await
    }

    /// Opens a port; 0 is any.
    pub(super) async fn on_port(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let uri = format!("http://{}{CALLBACK_PATH}", listener.local_addr()?);
        Ok(Self { listener, uri })
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Waits for the redirect and returns its URL. Other requests, such as for an icon, get a 404.
    pub(super) async fn receive(&self) -> io::Result<String> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let (stream, _) = accepted?;
                    connections.spawn(timeout(REQUEST_TIMEOUT, read_redirect(stream)));
                }
                Some(read) = connections.join_next() => {
                    if let Ok(Ok(Some(query))) = read {
                        return Ok(format!("{}?{query}", self.uri));
                    }
                }
            }
        }
    }
}

/// Returns the port of a redirect URI that this module can have made.
fn loopback_port(uri: &str) -> Option<u16> {
    let url: Url = uri.parse().ok()?;
    (url.host() == "127.0.0.1" && url.path_and_query() == CALLBACK_PATH).then(|| url.port())
}

/// Reads one request, answers it, and returns the query if it is the redirect.
async fn read_redirect(mut stream: TcpStream) -> Option<String> {
    let (mut buffer, mut looked_at) = (BytesMut::new(), 0);
    let head = loop {
        match take_request_head(&mut buffer, &mut looked_at) {
            Ok(Some(head)) => break head,
            Ok(None) => {}
            Err(error) => {
                respond(&mut stream, error.status, error.message).await;
                return None;
            }
        }
        if stream.read_buf(&mut buffer).await.ok()? == 0 {
            return None;
        }
    };
    let request = &head.request;
    let query = match (request.method(), request.path(), request.query()) {
        (&Method::GET, CALLBACK_PATH, Some(query)) => query.to_owned(),
        _ => {
            respond(&mut stream, StatusCode::NOT_FOUND, "This is not the address of a login.").await;
            return None;
        }
    };
    respond(&mut stream, StatusCode::OK, "The login has reached trunkline. You can close this window.").await;
    Some(query)
}

/// Sends a page with one sentence. Nothing of the request is in it, so that it can carry no script.
async fn respond(stream: &mut TcpStream, status: StatusCode, sentence: &str) {
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>trunkline</title><p>{sentence}</p>\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The redirect counts even if the browser is gone already.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn request(port: u16, text: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    #[tokio::test]
    async fn redirect_is_received_after_other_requests() {
        let redirect = LoopbackRedirect::open(None).await.unwrap();
        let uri = redirect.uri().to_owned();
        let port = loopback_port(&uri).unwrap();
        let receiving = tokio::spawn(async move { redirect.receive().await });
        // A connection that sends nothing blocks no other.
        let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        for (other, status) in [
            ("GET /favicon.ico HTTP/1.1\r\nHost: h\r\n\r\n", "404"),
            ("POST /callback?code=x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "404"),
            ("GET /callback HTTP/1.1\r\nHost: h\r\n\r\n", "404"),
            ("\x16\x03\x01", "400"),
        ] {
            let response = request(port, other).await;
            assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{other:?}: {response}");
        }
        let response = request(port, "GET /callback?code=a%20b&state=s HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert!(response.starts_with("HTTP/1.1 200") && !response.contains("state"), "{response}");
        assert_eq!(receiving.await.unwrap().unwrap(), format!("{uri}?code=a%20b&state=s"));
    }

    #[tokio::test]
    async fn registered_port_is_used_again_if_it_is_free() {
        let first = LoopbackRedirect::open(None).await.unwrap();
        let uri = first.uri().to_owned();
        assert_ne!(LoopbackRedirect::open(Some(&uri)).await.unwrap().uri(), uri, "the port was taken");
        drop(first);
        assert_eq!(LoopbackRedirect::open(Some(&uri)).await.unwrap().uri(), uri);
        for foreign in ["http://as.example/callback", "http://127.0.0.1:1/other", "nonsense"] {
            assert_ne!(LoopbackRedirect::open(Some(foreign)).await.unwrap().uri(), foreign);
        }
    }
}
