//! The server at the far end: one of everything that a pair of revisions has to carry.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline_server::protocol::LoggingLevel;
use trunkline_server::protocol::model::{CreateMessageRequest, PromptMessage};
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

#[derive(Deserialize, JsonSchema)]
struct Key {
    key: String,
}

/// Things that happened, each under a name that no other has, and those who wait for them.
///
/// They are files, since two calls of one client may be in two processes: a call with capabilities does not share a
/// connection on which input requests do not name their call.
struct EventFiles;

impl EventFiles {
    fn file(what: &str) -> PathBuf {
        std::env::temp_dir().join(format!("trunkline-matrix-{what}"))
    }

    fn happened(what: &str) {
        std::fs::write(Self::file(what), "").unwrap();
    }

    async fn wait_for(what: &str) {
        while std::fs::remove_file(Self::file(what)).is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until what happened was noticed by the one that waits for it.
    async fn noticed(what: &str) {
        while Self::file(what).exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Records that a call has ended, with any outcome.
struct EndMarker(String);

impl Drop for EndMarker {
    fn drop(&mut self) {
        EventFiles::happened(&self.0);
    }
}

pub(crate) fn server() -> Server {
    let server = with_changes(with_waits(with_tools(Server::new("far"))));
    with_impatience(with_questions(with_resources(server))).version("1.2.3").instructions("Be kind.")
}

fn with_tools(server: Server) -> Server {
    server
        .with(Tool::new("add").title("Add").description("Adds.").run(async |Pair { a, b }: Pair| a + b))
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
}

/// A tool that runs until it is cancelled, and one that reports when it was.
fn with_waits(server: Server) -> Server {
    server
        .with(Tool::new("wait").run(async |cx: Context, Key { key }: Key| {
            let ended = EndMarker(key);
            cx.progress(1, 2);
            std::future::pending::<()>().await;
            drop(ended);
        }))
        .with(Tool::new("waited").run(async |Key { key }: Key| {
            EventFiles::wait_for(&key).await;
            "it is over"
        }))
}

/// Tools that change what the server has.
fn with_changes(server: Server) -> Server {
    server
        .with(Tool::new("change").run(async |cx: Context| -> Result<&'static str, ToolError> {
            let server = cx.server().ok_or_else(|| ToolError::new("there is no server to change"))?;
            if !server.remove_tool("late") {
                server.add(Tool::new("late").run(async || "late"))?;
            }
            Ok("changed")
        }))
        .with(Tool::new("touch").run(async |cx: Context| -> Result<&'static str, ToolError> {
            let server = cx.server().ok_or_else(|| ToolError::new("there is no server to change"))?;
            server.notify_updated("test://a");
            Ok("touched")
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
        .with(Tool::new("sample").run(async |cx: Context| -> Result<String, ToolError> {
            let answer = cx.ask(sample(CreateMessageRequest::new([PromptMessage::user("Hi.")], 5))).await?;
            Ok(answer.content.first().and_then(|block| block.as_text()).unwrap_or_default().to_owned())
        }))
        .with(Tool::new("roots").run(async |cx: Context| -> Result<Json<Vec<String>>, ToolError> {
            Ok(Json(cx.roots().await?.into_iter().map(|root| root.uri).collect()))
        }))
}

/// A tool that requests input and does not wait for the response, and one that ends the wait.
fn with_impatience(server: Server) -> Server {
    server
        .with(Tool::new("impatient").run(async |cx: Context, Key { key }: Key| {
            tokio::select! {
                biased;
                () = EventFiles::wait_for(&key) => Ok::<_, ToolError>("gave up".to_owned()),
                answer = cx.ask(ask::<Confirm>("Quick?")) => Ok(answer?.0.to_string()),
            }
        }))
        .with(Tool::new("hurry").run(async |Key { key }: Key| {
            EventFiles::happened(&key);
            EventFiles::noticed(&key).await;
            "hurried"
        }))
}
