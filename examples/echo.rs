//! One tool, `echo`, over stdio or HTTP: the server that the benchmarks measure.
//!
//! `cargo run --release --example echo -- --stdio`, or `-- --http 127.0.0.1:8080`.

#![expect(clippy::print_stderr, reason = "the user has to know where it listens")]

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use trunkline::prelude::*;
use trunkline::server::http::HttpServerOptions;
use trunkline::server::http::resource_server::{
    ResourceServer, ResourceServerOptions, TokenRules, TrustedIssuer,
};
use trunkline::{HostOptions, Layers, Metrics, ServerLimits, Trace};

#[derive(Parser)]
struct Options {
    /// Serves standard input and output.
    #[arg(long, conflicts_with = "http", required_unless_present = "http")]
    stdio: bool,
    /// Serves HTTP on this address.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Makes the handler yield once before it answers.
    #[arg(long = "yield")]
    yields: bool,
    /// Counts and times calls.
    #[arg(long, env = "ECHO_METRICS")]
    metrics: bool,
    /// Puts calls into spans, without a subscriber.
    #[arg(long, env = "ECHO_TRACE")]
    trace: bool,
    /// The most legacy sessions.
    #[arg(long, default_value_t = 10_000)]
    max_sessions: usize,
    /// How long an idle legacy session lives, in seconds.
    #[arg(long, default_value_t = 1800)]
    session_ttl: u64,
    /// Requires access tokens of this issuer, which has its keys at `/jwks`.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// The message to repeat.
    message: String,
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    let options = Options::parse();
    let yields = options.yields;
    let echo = Tool::new("echo").description("Returns the message.").run(move |echo: Echo| async move {
        if yields {
            tokio::task::yield_now().await;
        }
        echo.message
    });
    let server = Server::new("echo").version(env!("CARGO_PKG_VERSION")).with(echo);
    let limits = ServerLimits { connections: 100_000, ..ServerLimits::default() };
    let layers = if options.trace { Layers::new().with(Trace::new()) } else { Layers::new() };
    let metrics = options.metrics.then(Metrics::new);
    let host = server.host(HostOptions { limits, layers, metrics, ..HostOptions::default() })?;
    stop_on_signal(host.shutdown().clone());
    match options.http {
        None => serve(stdio(), host).await,
        Some(address) => {
            let mut http_options = HttpServerOptions::default();
            http_options.session_limits.total = options.max_sessions;
            http_options.session_limits.idle = Duration::from_secs(options.session_ttl);
            if let Some(issuer) = options.issuer {
                let resource = "https://echo.example/mcp";
                let issuer =
                    TrustedIssuer::jwt(TokenRules::new(&issuer, [resource])).at(format!("{issuer}/jwks"));
                let options = ResourceServerOptions::new(resource).with_issuer(issuer);
                http_options.authenticator = Arc::new(ResourceServer::new(options)?);
            }
            eprintln!("echo listens on http://{address}/mcp");
            serve(http(address).options(http_options), host).await
        }
    }
}

async fn serve(binding: impl ServerTransport, host: trunkline::Host) -> trunkline::Result<()> {
    Ok(binding.serve(host).await?)
}

fn stop_on_signal(shutdown: trunkline::Shutdown) {
    tokio::spawn(async move {
        tokio::select! {
            () = terminated() => shutdown.drain(),
            _ = tokio::signal::ctrl_c() => shutdown.drain(),
        }
    });
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => drop(terminate.recv().await),
        Err(_) => std::future::pending().await,
    }
}

/// Only Unix has that signal.
#[cfg(not(unix))]
async fn terminated() {
    std::future::pending::<()>().await;
}
