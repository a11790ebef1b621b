//! The server that the official conformance suite and the clients of `interop/` are run against.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use trunkline::protocol::{Revision, RevisionSet};
use trunkline::server::ServerTransport;
use trunkline::server::StateKeys;
use trunkline::server::http::{CookieSessions, HttpServerOptions};
use trunkline::server::session::BusLimits;
use trunkline::store_redis::{RedisStore, RedisStoreLimits};
use trunkline::{HostOptions, Shutdown, http, stdio};

#[derive(Parser)]
struct Options {
    /// Serves standard input and output.
    #[arg(long, conflicts_with = "http", required_unless_present = "http")]
    stdio: bool,
    /// Serves HTTP on this address.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Answers over HTTP with event streams even where a plain answer would do.
    #[arg(long, requires = "http")]
    always_stream: bool,
    /// Gives clients of HTTP+SSE a cookie.
    #[arg(long, requires = "http")]
    cookie_sessions: bool,
    /// Supports only these revisions.
    #[arg(long, value_name = "REVISION", value_delimiter = ',', value_parser = revision)]
    revisions: Vec<Revision>,
    /// Shares sessions with the other processes that use this Redis.
    #[arg(long, value_name = "URL", requires = "http", requires = "state_key")]
    store: Option<String>,
    /// The file with the key of all these processes.
    #[arg(long, value_name = "FILE")]
    state_key: Option<PathBuf>,
}

fn revision(name: &str) -> Result<Revision, String> {
    Revision::parse(name).ok_or_else(|| format!("`{name}` is no revision"))
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    let options = Options::parse();
    let revisions = match options.revisions.is_empty() {
        true => RevisionSet::ALL,
        false => RevisionSet::from_revisions(options.revisions),
    };
    let state_keys = options.state_key.map(|path| StateKeys::from_files([path])).transpose()?;
    let mut settings = HostOptions { revisions, state_keys, ..HostOptions::default() };
    let mut endpoint = HttpServerOptions {
        always_stream: options.always_stream,
        cookie_sessions: options.cookie_sessions.then(CookieSessions::default),
        ..HttpServerOptions::default()
    };
    if let (Some(url), Some(keys)) = (&options.store, &settings.state_keys) {
        let store = RedisStore::open(&url.parse()?, keys, RedisStoreLimits::default()).await?;
        settings.state_store = Some(Arc::new(store.states()));
        settings.bus = Some(Arc::new(store.join_bus(BusLimits::default()).await?));
        endpoint.sessions = Some(Arc::new(store.sessions()));
        endpoint.events = Some(Arc::new(store.events()));
    }
    let host = trunkline_conformance::everything().host(settings)?;
    drain_on_sigterm(host.shutdown().clone())?;
    match options.http {
        Some(address) => http(address).options(endpoint).serve(host).await?,
        None => stdio().serve(host).await?,
    }
    Ok(())
}

fn drain_on_sigterm(shutdown: Shutdown) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        terminate.recv().await;
        shutdown.drain();
    });
    Ok(())
}
