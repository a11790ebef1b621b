//! A page on this machine: what a server is to fetch, and how a question is put to a server beside the protocol.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::report::Checked;

/// The text of the page.
pub(crate) const WORDS: &str = "words of the page";

/// Serves the page at `/page` for as long as this program runs; everything else is not found.
///
/// # Errors
/// No port is free.
pub(crate) async fn serve() -> Checked<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that leaves early is its own business.
            let _ = answer(stream).await;
        }
    });
    Ok(address)
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut start = String::new();
    stream.read_line(&mut start).await?;
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 2 {
        line.clear();
    }
    let (status, body) =
        if start.starts_with("GET /page ") { ("200 OK", WORDS) } else { ("404 Not Found", "") };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n", body.len());
    stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).await
}

/// Fetches a page from the server of this endpoint, without TLS and redirects.
///
/// # Errors
/// The server is not there.
pub(crate) async fn fetch_beside(endpoint: &str, path: &str) -> Checked<String> {
    let authority = endpoint.split('/').nth(2).ok_or("the endpoint is not an address")?;
    let mut stream = TcpStream::connect(authority).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (_, body) = response.split_once("\r\n\r\n").ok_or("the page has no body")?;
    Ok(body.to_owned())
}
