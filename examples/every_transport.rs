//! One server over every transport at once; its handlers know of none.
//!
//! `cargo run --example every_transport -- 127.0.0.1:8080 /tmp/demo.sock` answers on
//!
//! - standard input and output,
//! - `http://127.0.0.1:8080/mcp` (Streamable HTTP), `/sse` with `/messages` (HTTP+SSE) and `/ws` (WebSocket),
//! - `/tmp/demo.sock`, a Unix socket with a line for each message,
//! - a channel in memory, over which the program calls itself once at its start.
//!
//! It ends when its standard input does.

use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use trunkline::prelude::*;
use trunkline::server::http::{self, HttpServerOptions};
use trunkline::session::Principal;
use trunkline::transport::{Channel as _, LineChannel};
use trunkline::{Host, HostOptions};

/// The longest message that is taken over the socket.
const LIMIT: usize = 1 << 20;

/// How long calls may take to finish at the end.
const GRACE: Duration = Duration::from_secs(5);

/// Greets a person by name.
#[tool]
async fn hello(name: String) -> String {
    format!("hello {name}")
}

/// Calls the server from within the program: a client's end is a channel like any other.
async fn over_memory(host: &Host) -> io::Result<String> {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{"name":"myself"},
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut client = host.connect();
    client.send(call);
    poll_fn(|cx| client.poll_flush(cx)).await?;
    match poll_fn(|cx| client.poll_receive(cx)).await {
        Some(Ok(answer)) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        Some(Err(error)) => Err(io::Error::other(error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Three transports on one port.
async fn over_http(host: Host, listener: TcpListener) -> io::Result<()> {
    let endpoint = host.http_service(HttpServerOptions::default());
    http::serve(listener, &endpoint, endpoint.clone(), GRACE).await.map(drop)
}

/// A channel for each client of the socket, until the server is to end.
async fn over_socket(host: Host, path: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            () = host.shutdown().draining() => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => {
                let (reader, writer) = accepted?.0.into_split();
                let (channel, host) = (LineChannel::new(reader, writer, LIMIT), host.clone());
                clients.spawn(async move { host.serve_channel(channel, Principal::Process).await });
            }
        }
    }
    while clients.join_next().await.is_some() {}
    std::fs::remove_file(path)
}

/// Stdio: its end stops the process.
async fn over_pipes(host: Host) -> trunkline::Result<()> {
    let served = stdio().serve(host.clone()).await;
    host.shutdown().drain();
    Ok(served?)
}

#[tokio::main]
#[expect(clippy::print_stderr, reason = "a program says where it listens")]
pub(crate) async fn main() -> trunkline::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let (Some(address), Some(socket)) = (args.next(), args.next().map(PathBuf::from)) else {
        return Err("an address and the path of a socket are needed".into());
    };
    let host = Server::new("everywhere").with(hello).host(HostOptions::default())?;
    let listener = TcpListener::bind(address.to_string_lossy().as_ref()).await?;
    eprintln!("in memory: {}", over_memory(&host).await?);
    eprintln!("over HTTP: {}", listener.local_addr()?);
    let (pipes, http, unix) = tokio::join!(
        over_pipes(host.clone()),
        over_http(host.clone(), listener),
        over_socket(host.clone(), &socket),
    );
    pipes?;
    http?;
    Ok(unix?)
}
