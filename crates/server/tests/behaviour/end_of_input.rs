//! The end of a channel's input: requests that were read are answered, and no input is requested from a client that
//! cannot respond.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use trunkline_server::session::Principal;
use trunkline_server::transport::LineChannel;
use trunkline_server::{Confirm, Context, Host, ServeError, Server, ServerLimits, Tool, ToolError, ask};

use crate::support::{ModernRequest, host, host_with, initialize, legacy_tool, note, text, within};

fn server() -> Server {
    Server::new("s")
        .with(Tool::new("quick").run(async || "quick"))
        .with(Tool::new("endless").run(async || std::future::pending::<()>().await))
        .with(Tool::new("ask").run(async |cx: Context| -> Result<String, ToolError> {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(cx.ask(ask::<Confirm>("Sure?")).await?.0.to_string())
        }))
        .with(Tool::new("roots").run(async |cx: Context| format!("{:?}", cx.roots().await)))
}

/// Writes messages into a pipe, closes it, and returns everything that comes out of the other, and how it ended.
async fn piped(host: &Host, messages: &[Value]) -> (Vec<Value>, Result<(), ServeError>) {
    let input: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let (theirs, mut ours) = tokio::io::duplex(1 << 20);
    let served =
        within(host.serve_channel(
            LineChannel::new(std::io::Cursor::new(input), theirs, 1 << 20),
            Principal::Process,
        ))
        .await;
    let mut output = String::new();
    within(ours.read_to_string(&mut output)).await.unwrap();
    (output.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), served)
}

fn hello(revision: &str) -> [Value; 2] {
    let capabilities = json!({ "elicitation": {}, "roots": {} });
    [initialize(revision, capabilities), note("notifications/initialized", json!({}))]
}

fn answer<'a>(answers: &'a [Value], id: &Value) -> &'a Value {
    let found: Vec<_> = answers.iter().filter(|answer| answer["id"] == *id).collect();
    let [answer] = found.as_slice() else { panic!("{id} has not one answer: {answers:?}") };
    answer
}

#[track_caller]
fn assert_refused(answer: &Value) {
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("before this call was over"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn calls_running_past_the_drain_timeout_are_refused_and_counted() {
    let [first, second] = hello("2025-03-26");
    let messages = [
        first,
        second,
        ModernRequest::tool("quick").id("answered").value(),
        ModernRequest::tool("endless").id("modern").value(),
        legacy_tool("legacy", "endless"),
        json!([legacy_tool("in batch", "endless"), legacy_tool("beside", "quick")]),
        legacy_tool("held", "quick"),
        json!([legacy_tool("held in batch", "quick")]),
    ];
    let limits = ServerLimits { calls_per_channel: 3, ..ServerLimits::default() };
    let host = host_with(&server(), limits.clone());
    let begun = Instant::now();
    let (answers, served) = piped(&host, &messages).await;
    assert_eq!(begun.elapsed().as_secs(), limits.drain_timeout.as_secs());
    assert!(matches!(served, Err(ServeError::Aborted(5))), "{served:?}");
    assert_eq!(text(answer(&answers, &json!("answered"))), "quick");
    for id in ["modern", "legacy", "held"] {
        assert_refused(answer(&answers, &json!(id)));
    }
    let batches: Vec<_> = answers.iter().filter_map(Value::as_array).collect();
    let [run, held] = batches.as_slice() else { panic!("{answers:?}") };
    assert_refused(answer(run, &json!("in batch")));
    assert_eq!(text(answer(run, &json!("beside"))), "quick", "what was over is not lost with the rest");
    assert_refused(answer(held, &json!("held in batch")));
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn input_request_after_end_of_input_fails_at_once() {
    for tool in ["ask", "roots"] {
        let [first, second] = hello("2025-11-25");
        let begun = Instant::now();
        let (answers, served) = piped(&host(&server()), &[first, second, legacy_tool(2, tool)]).await;
        assert!(served.is_ok(), "{served:?}");
        assert!(begun.elapsed() < Duration::from_millis(100), "by the paused clock nobody waits");
        let said = text(answer(&answers, &json!(2)));
        assert!(said == "Err(Ended)" || said.contains("can answer no more"), "{said}");
        assert!(answers.iter().all(|message| message.get("method").is_none()), "{answers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_input_request_fails_when_the_input_ends() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let (mut input, reader) = tokio::io::duplex(1 << 16);
    let (writer, output) = tokio::io::duplex(1 << 16);
    let host = host(&server());
    let served = tokio::spawn(async move {
        host.serve_channel(LineChannel::new(reader, writer, 1 << 16), Principal::Process).await
    });
    let mut lines = BufReader::new(output).lines();
    for message in hello("2025-11-25").iter().chain([&legacy_tool(2, "ask")]) {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut seen = String::new();
    while !seen.contains("elicitation/create") {
        seen = within(lines.next_line()).await.unwrap().unwrap();
    }
    drop(input);
    let answer: Value = serde_json::from_str(&within(lines.next_line()).await.unwrap().unwrap()).unwrap();
    assert!(text(&answer).contains("can answer no more"), "{answer}");
    assert!(within(served).await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_closed_with_their_results_at_end_of_input() {
    let listen = |id: &str| {
        ModernRequest::new("subscriptions/listen")
            .id(id)
            .param("notifications", json!({ "toolsListChanged": true }))
            .value()
    };
    let slow = Tool::new("slow").run(async || tokio::time::sleep(Duration::from_secs(1)).await);
    let limits = ServerLimits { calls_per_channel: 1, ..ServerLimits::default() };
    let host = host_with(&server().with(slow), limits);
    let messages = [listen("early"), ModernRequest::tool("slow").id("call").value(), listen("held")];
    let (answers, served) = piped(&host, &messages).await;
    assert!(served.is_ok(), "{served:?}");
    for id in ["early", "held"] {
        let closing = answer(&answers, &json!(id));
        assert_eq!(closing["result"]["resultType"], "complete", "{closing}");
    }
}
