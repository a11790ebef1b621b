use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline_server::protocol::LoggingLevel;
use trunkline_server::protocol::model::{CacheHint, CacheScope, CreateMessageRequest, PromptMessage};
use trunkline_server::{
    Confirm, Context, Json, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError, ask, sample,
};

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Said {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    who: String,
}

/// Counts the running and the cancelled calls of `wait`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) cancelled: Arc<AtomicUsize>,
    pub(crate) reads: Arc<AtomicUsize>,
}

struct Ended(Life, bool);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.cancelled.fetch_add(usize::from(self.1), Ordering::SeqCst);
    }
}

/// A server with one of everything.
pub(crate) fn server(life: &Life) -> Server {
    with_questions(with_resources(with_tools(Server::new("everything"), life), life))
}

fn with_tools(server: Server, life: &Life) -> Server {
    let life = life.clone();
    server
        .with(Tool::new("add").description("Adds.").run(async |Pair { a, b }: Pair| a + b))
        .with(Tool::new("echo").run(async |Said { message }: Said| message))
        .with(
            Tool::new("fail").run(async || -> Result<String, ToolError> { Err(ToolError::new("it broke")) }),
        )
        .with(Tool::new("progress").run(async |cx: Context| {
            for step in 1..=3 {
                cx.progress_with(f64::from(step), Some(3.0), format!("step {step}"));
                tokio::task::yield_now().await;
            }
            "done"
        }))
        .with(Tool::new("log").run(async |cx: Context| {
            cx.log(LoggingLevel::Debug, "quiet");
            cx.log(LoggingLevel::Warning, serde_json::json!({ "loud": true }));
            "logged"
        }))
        .with(Tool::new("wait").run(move |cx: Context| {
            let life = life.clone();
            async move {
                life.running.fetch_add(1, Ordering::SeqCst);
                let mut ended = Ended(life, true);
                cx.progress(1, 2);
                std::future::pending::<()>().await;
                ended.1 = false;
                "never"
            }
        }))
}

fn with_resources(server: Server, life: &Life) -> Server {
    let life = life.clone();
    server
        .with(Resource::new("test://a", "a").text("alpha"))
        .with(
            Resource::new("test://kept", "kept")
                .cache(CacheHint { ttl_ms: 60_000, scope: CacheScope::Private })
                .read(move || {
                    let count = life.reads.fetch_add(1, Ordering::SeqCst) + 1;
                    async move { format!("read {count}") }
                }),
        )
        .with(
            ResourceTemplate::new("test://t/{who}", "t").read(async |Who { who }: Who| format!("t of {who}")),
        )
        .with(
            Prompt::new("greet")
                .get(async |Who { who }: Who| vec![PromptMessage::user(format!("Greet {who}."))])
                .complete("who", async |typed: String, _| {
                    ["ada", "alan", "grace"]
                        .into_iter()
                        .filter(|n| n.starts_with(&typed))
                        .map(Into::into)
                        .collect()
                }),
        )
}

fn with_questions(server: Server) -> Server {
    server
        .with(Tool::new("confirm").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(ask::<Confirm>("Sure?")).await?.0.to_string())
        }))
        .with(Tool::new("in_sequence").run(async |cx: Context| -> Result<String, ToolError> {
            let first = cx.ask(ask::<Confirm>("First?")).await?.0;
            let second = cx.ask(ask::<Confirm>("Second?")).await?.0;
            Ok(format!("{first} {second}"))
        }))
        .with(Tool::new("at_once").run(async |cx: Context| -> Result<String, ToolError> {
            let (a, b) = cx.ask_all((ask::<Confirm>("A?"), ask::<Confirm>("B?"))).await?;
            Ok(format!("{} {}", a.0, b.0))
        }))
        .with(Tool::new("sample").run(async |cx: Context| -> Result<String, ToolError> {
            let answer = cx.ask(sample(CreateMessageRequest::new([PromptMessage::user("Hi.")], 5))).await?;
            Ok(answer.content.first().and_then(|block| block.as_text()).unwrap_or_default().to_owned())
        }))
        .with(Tool::new("roots").run(async |cx: Context| -> Result<Json<Vec<String>>, ToolError> {
            Ok(Json(cx.roots().await?.into_iter().map(|root| root.uri).collect()))
        }))
}
