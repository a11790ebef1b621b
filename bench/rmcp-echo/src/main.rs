//! The echo server on rmcp: the peer that our server is compared with.
//!
//! It is written the way rmcp's own documentation shows: a tool router, the Streamable HTTP service with legacy
//! sessions on, mounted in axum, or the stdio transport.

mod access_tokens;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::middleware::from_fn_with_state;
use axum::serve::ListenerExt as _;
use rmcp::ServiceExt as _;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig, SubscriptionFilter};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::access_tokens::{TokenVerifier, require_token};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::from_arguments(std::env::args().skip(1))?;
    match options.transport {
        Transport::Stdio => serve_stdio(options.handler).await,
        Transport::Http(ref address) => serve_http(address, &options).await,
    }
}

async fn serve_stdio(handler: HandlerStyle) -> anyhow::Result<()> {
    let service = Echo::new(handler).serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}

async fn serve_http(address: &str, options: &Options) -> anyhow::Result<()> {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = session_config(options.session_ttl);
    let template = Echo::new(options.handler);
    let service = StreamableHttpService::new(
        move || Ok::<_, io::Error>(template.clone()),
        Arc::new(sessions),
        StreamableHttpServerConfig::default(),
    );
    let mut router = axum::Router::new().nest_service("/mcp", service);
    if let Some(issuer) = &options.issuer {
        let verifier = Arc::new(TokenVerifier::of_issuer(issuer)?);
        router = router.layer(from_fn_with_state(verifier, require_token));
    }
    let listener = tokio::net::TcpListener::bind(address).await.with_context(|| format!("bind {address}"))?;
    // Every measured server answers without Nagle's delay, or the comparison would be about timers.
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    axum::serve(listener, router).await?;
    Ok(())
}

fn session_config(ttl: Option<Duration>) -> SessionConfig {
    let mut config = SessionConfig::default();
    if ttl.is_some() {
        config.keep_alive = ttl;
    }
    config
}

/// The server: one tool, and change notices so that a listener has something to subscribe to.
#[derive(Clone)]
struct Echo {
    tool_router: ToolRouter<Self>,
    handler: HandlerStyle,
}

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    /// The text to send back.
    message: String,
}

#[tool_router]
impl Echo {
    fn new(handler: HandlerStyle) -> Self {
        Self { tool_router: Self::tool_router(), handler }
    }

    #[tool(description = "Sends the message back.")]
    async fn echo(&self, Parameters(EchoArguments { message }): Parameters<EchoArguments>) -> String {
        if self.handler == HandlerStyle::YieldsOnce {
            tokio::task::yield_now().await;
        }
        message
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
            .with_server_info(Implementation::new("echo", "1.0.0"))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }
}

/// Whether a call is answered at its first poll.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerStyle {
    ReadyAtOnce,
    YieldsOnce,
}

enum Transport {
    Stdio,
    Http(String),
}

struct Options {
    transport: Transport,
    handler: HandlerStyle,
    session_ttl: Option<Duration>,
    /// Requires access tokens of this issuer, which has its keys at `/jwks`.
    issuer: Option<String>,
}

impl Options {
    fn from_arguments(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut transport = None;
        let mut handler = HandlerStyle::ReadyAtOnce;
        let (mut session_ttl, mut issuer) = (None, None);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--stdio" => transport = Some(Transport::Stdio),
                "--http" => transport = Some(Transport::Http(arguments.next().context("--http ADDRESS")?)),
                "--yield" => handler = HandlerStyle::YieldsOnce,
                "--session-ttl" => {
                    let seconds = arguments.next().context("--session-ttl SECONDS")?.parse()?;
                    session_ttl = Some(Duration::from_secs(seconds));
                }
                "--issuer" => issuer = Some(arguments.next().context("--issuer URL")?),
                other => bail!("unknown argument `{other}`"),
            }
        }
        let transport = transport.context("give --stdio or --http ADDRESS")?;
        Ok(Self { transport, handler, session_ttl, issuer })
    }
}
