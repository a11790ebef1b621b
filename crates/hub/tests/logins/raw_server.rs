//! Answers HTTP requests with a function, one for each connection.

use std::sync::Arc;

use http::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request, as far as the functions use it.
pub(crate) struct RawRequest {
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: String,
}

/// Starts a server at a free port, and returns its origin.
pub(crate) async fn start<F>(answer: F) -> String
where
    F: Fn(&str, RawRequest) -> Response<String> + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (answer, own) = (Arc::new(answer), origin.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, own) = (answer.clone(), own.clone());
            tokio::spawn(async move { respond(stream, |request| answer(&own, request)).await });
        }
    });
    origin
}

async fn respond(mut stream: TcpStream, answer: impl FnOnce(RawRequest) -> Response<String>) {
    let Some(request) = read(&mut stream).await else { return };
    let (parts, body) = answer(request).into_parts();
    let mut head = format!(
        "HTTP/1.1 {} x\r\nConnection: close\r\nContent-Length: {}\r\n",
        parts.status.as_u16(),
        body.len()
    );
    for (name, value) in &parts.headers {
        head += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<RawRequest> {
    let mut received = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        received.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8(received.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let target = head.split(' ').nth(1).unwrap();
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            return Some(RawRequest {
                path: path.to_owned(),
                query: query.to_owned(),
                body: body.to_owned(),
            });
        }
    }
}
