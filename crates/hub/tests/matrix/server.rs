//! The server at the far end: one of everything that a pair of revisions has to carry.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline_server::protocol::Level;
use trunkline_server::protocol::model::{PromptMessage, SampleQuestion};
use trunkline_server::{
    Confirm, Context, Json, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError, ask, sample,
};

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    who: String,
}

/// Tells how many calls of `wait` run, and how many were cancelled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) cancelled: Arc<AtomicUsize>,
}

struct Cancelled(Life);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.cancelled.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn server(life: &Life) -> Server {
    with_questions(with_resources(with_tools(Server::new("far"), life)))
        .version("1.2.3")
        .instructions("Be kind.")
}

fn with_tools(server: Server, life: &Life) -> Server {
    let life = life.clone();
    server
        .with(Tool::new("add").title("Add").description("Adds.").run(async |Pair { a, b }: Pair| a + b))
        .with(
            Tool::new("fail").run(async || -> Result<String, ToolError> { Err(ToolError::said("it broke")) }),
        )
        .with(Tool::new("progress").run(async |cx: Context| {
            for step in 1..=3 {
                cx.progress_with(f64::from(step), Some(3.0), format!("step {step}"));
                tokio::task::yield_now().await;
            }
            "done"
        }))
        .with(Tool::new("log").run(async |cx: Context| {
            cx.log(Level::Debug, "quiet");
            cx.log(Level::Warning, serde_json::json!({ "loud": true }));
            "logged"
        }))
        .with(Tool::new("wait").run(move |cx: Context| {
            let life = life.clone();
            async move {
                life.running.fetch_add(1, Ordering::SeqCst);
                let _cancelled = Cancelled(life);
                cx.progress(1, 2);
                std::future::pending::<()>().await;
            }
        }))
}

fn with_resources(server: Server) -> Server {
    server
        .with(Resource::new("test://a", "a").text("alpha"))
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
        .with(Tool::new("impatient").run(async |cx: Context| -> Result<String, ToolError> {
            match tokio::time::timeout(Duration::from_secs(1), cx.ask(ask::<Confirm>("Quick?"))).await {
                Ok(answer) => Ok(answer?.0.to_string()),
                Err(_) => Ok("gave up".to_owned()),
            }
        }))
        .with(Tool::new("sample").run(async |cx: Context| -> Result<String, ToolError> {
            let answer = cx.ask(sample(SampleQuestion::new([PromptMessage::user("Hi.")], 5))).await?;
            Ok(answer.content.first().and_then(|block| block.as_text()).unwrap_or_default().to_owned())
        }))
        .with(Tool::new("roots").run(async |cx: Context| -> Result<Json<Vec<String>>, ToolError> {
            Ok(Json(cx.roots().await?.into_iter().map(|root| root.uri).collect()))
        }))
}
