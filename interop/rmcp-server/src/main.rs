//! A server on rmcp, to run behind a hub: over its standard streams, or over Streamable HTTP with `--http PORT`.
//!
//! rmcp can request input during a call only in the legacy era. In the modern era a tool returns its input request.
// rmcp marks as deprecated what the legacy era has beyond the modern one, and that is what is here to be tried.
#![allow(deprecated)]

use std::io;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::InputResponses;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequestParams, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationSchema, Implementation, InputRequest, InputRequiredResult,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, RequestMetaObject,
    SamplingMessage, ServerCapabilities, ServerConfig,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            Tools::new().serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
        ["--http", port] => serve_http(port.parse().context("--http PORT")?).await,
        other => bail!("expected nothing or --http PORT, not {other:?}"),
    }
}

async fn serve_http(port: u16) -> anyhow::Result<()> {
    let service = StreamableHttpService::new(
        || Ok::<_, io::Error>(Tools::new()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let service = TowerToHyperService::new(service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
        // A connection that fails is the loss of its client alone.
        tokio::spawn(async { drop(connection.await) });
    }
}

#[derive(Clone)]
struct Tools {
    tool_router: ToolRouter<Self>,
}

#[derive(Deserialize, JsonSchema)]
struct Summands {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Target {
    to: u32,
}

/// The form that is sent to the user.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

rmcp::elicit_safe!(Name);

#[tool_router]
impl Tools {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Adds two integers.")]
    async fn add(&self, Parameters(Summands { a, b }): Parameters<Summands>) -> String {
        a.saturating_add(b).to_string()
    }

    #[tool(description = "Counts, and reports progress.")]
    async fn count(
        &self,
        Parameters(Target { to }): Parameters<Target>,
        meta: RequestMetaObject,
        peer: Peer<RoleServer>,
    ) -> Result<String, ErrorData> {
        if let Some(token) = meta.get_progress_token() {
            for step in 1..=to {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
                peer.notify_progress(progress.with_total(f64::from(to))).await.map_err(internal)?;
            }
        }
        Ok(format!("counted to {to}"))
    }

    #[tool(description = "Writes one line to the log of the client.")]
    async fn log(&self, peer: Peer<RoleServer>) -> Result<String, ErrorData> {
        let line = LoggingMessageNotificationParam::new(LoggingLevel::Warning, "a warning".into());
        peer.notify_logging_message(line).await.map_err(internal)?;
        Ok("logged".to_owned())
    }

    #[tool(description = "Asks for a name in the middle of the call.")]
    async fn ask_person(&self, peer: Peer<RoleServer>) -> Result<String, ErrorData> {
        let answer = peer.elicit::<Name>("What is your name?").await.map_err(internal)?;
        Ok(answer.map_or_else(|| "no answer".to_owned(), |answer| format!("accept {}", answer.name)))
    }

    #[tool(description = "Asks for a name by returning the request, which the modern era is made for.")]
    async fn ask_by_result(
        &self,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(answer) = responses.and_then(|mut responses| responses.remove("name")) else {
            let request = ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: "What is your name?".to_owned(),
                requested_schema: ElicitationSchema::from_type::<Name>().map_err(internal)?,
            });
            let requests = [("name".to_owned(), InputRequest::Elicitation(request))].into();
            return Ok(InputRequiredResult::from_input_requests(requests).into());
        };
        let answer: ElicitResult = serde_json::from_value(answer).map_err(internal)?;
        let name: Name = serde_json::from_value(answer.content.unwrap_or_default()).map_err(internal)?;
        let text = format!("accept {}", name.name);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    #[tool(description = "Asks the model of the client.")]
    async fn ask_model(&self, peer: Peer<RoleServer>) -> Result<String, ErrorData> {
        let question = CreateMessageRequestParams::new(vec![SamplingMessage::user_text("Say hello.")], 50);
        let answer = peer.create_message(question).await.map_err(internal)?;
        let content = serde_json::to_string(&answer.message.content).map_err(internal)?;
        Ok(format!("the model answered: {content}"))
    }

    #[tool(description = "Asks for the roots of the client.")]
    async fn ask_roots(&self, peer: Peer<RoleServer>) -> Result<String, ErrorData> {
        let answer = peer.list_roots().await.map_err(internal)?;
        Ok(answer.roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" "))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_logging().build())
            .with_server_info(Implementation::new("interop", "1.0.0"))
    }
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
