//! An HTTP client that sends a given request, on one connection per request.

use std::net::SocketAddr;

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use trunkline_server::protocol::sse::{SseDecoder, SseEvent};

use crate::service::within;

/// Begins a request that names the right host and carries JSON.
pub(crate) fn to(address: SocketAddr, method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", address.to_string())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

/// Sends a request.
pub(crate) async fn send(
    address: SocketAddr,
    request: http::request::Builder,
    body: String,
) -> Response<Incoming> {
    let stream = TcpStream::connect(address).await.unwrap();
    send_over(stream, request, body).await
}

/// Sends a request over an open connection, which is closed when the response is dropped.
pub(crate) async fn send_over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: http::request::Builder,
    body: String,
) -> Response<Incoming> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    within(sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap())).await.unwrap()
}

/// Sends a request and returns what matters of the answer.
pub(crate) async fn status(
    address: SocketAddr,
    request: http::request::Builder,
    body: &str,
) -> (StatusCode, HeaderMap) {
    let response = send(address, request, body.to_owned()).await;
    (response.status(), response.headers().clone())
}

/// Reads the events of a response.
pub(crate) struct EventReader {
    body: Incoming,
    decoder: Box<SseDecoder>,
    held: Bytes,
}

impl EventReader {
    pub(crate) fn new(response: Response<Incoming>) -> Self {
        Self { body: response.into_body(), decoder: Box::new(SseDecoder::new(8 << 20)), held: Bytes::new() }
    }

    /// Returns the name and data of the next event that has any; `None` when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<(Option<String>, Bytes)> {
        loop {
            if let Some(event) = self.decoder.next_event(&mut self.held) {
                let SseEvent { event, data, .. } = event.unwrap();
                match data {
                    Some(data) if !data.is_empty() => return Some((event, data)),
                    _ => continue,
                }
            }
            assert!(!self.held.has_remaining());
            self.held = self.body.frame().await?.ok()?.into_data().ok()?;
        }
    }

    /// Returns the next message; `None` when the stream is over.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        let (_, data) = self.next().await?;
        Some(serde_json::from_slice(&data).unwrap())
    }
}
