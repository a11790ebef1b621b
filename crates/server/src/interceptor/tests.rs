use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::CallToolResult;
use trunkline_protocol::{Method, RawJson, Refusal, RequestId, Revision};
use trunkline_session::{Principal, SessionId};

use super::*;
use crate::call::{Context, Handler, ask};
use crate::server::Server;
use crate::testing::{assert_refused, call, call_text, caller};
use crate::tool::Tool;
use crate::{Confirm, ToolError};

type TestCallFuture = BoxFuture<'static, Result<HandlerOutcome, Refusal>>;
type RecordedEvents = Arc<Mutex<Vec<String>>>;

/// An interceptor that records its name before and after the call.
fn recorder(name: &'static str, events: &RecordedEvents) -> impl Interceptor {
    let events = events.clone();
    move |call: IncomingCall, next: Next| {
        let events = events.clone();
        async move {
            events.lock().unwrap().push(format!("{name} in"));
            let answer = next.run(call).await;
            events.lock().unwrap().push(format!("{name} out"));
            answer
        }
    }
}

fn tool_call(name: &str) -> IncomingCall {
    call(Revision::NEWEST, Method::ToolsCall, &json!({ "name": name }))
}

fn poll(answer: &mut TestCallFuture) -> Poll<Result<HandlerOutcome, Refusal>> {
    answer.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()))
}

fn text(outcome: HandlerOutcome) -> String {
    let HandlerOutcome::Done(ServerResult::Tool(result)) = outcome else {
        panic!("not the result of a tool: {outcome:?}")
    };
    let mark = if result.is_error { "!" } else { "" };
    format!("{mark}{}", result.content.first().and_then(|block| block.as_text()).unwrap_or_default())
}

#[test]
fn first_added_interceptor_is_outermost() {
    let events = RecordedEvents::default();
    let recorded = events.clone();
    let tool = Tool::new("hello").run(move || {
        recorded.lock().unwrap().push("tool".to_owned());
        async { "hi" }
    });
    let server = Server::new("test").with(tool).layer(recorder("a", &events)).layer(recorder("b", &events));
    assert_eq!(call_text(&server, "hello", &json!({})), "hi");
    assert_eq!(*events.lock().unwrap(), ["a in", "b in", "tool", "b out", "a out"]);
}

#[tokio::test]
async fn host_layers_wrap_server_layers_and_every_handler() {
    let events = RecordedEvents::default();
    let server =
        Server::new("test").with(Tool::new("hello").run(async || "hi")).layer(recorder("server", &events));
    let layers = Layers::new().with(recorder("host", &events));
    let handler = layers.wrap(server.handle().unwrap());
    assert_eq!(text(handler.call(tool_call("hello")).await.unwrap()), "hi");
    assert_eq!(*events.lock().unwrap(), ["host in", "server in", "server out", "host out"]);
    assert_eq!(handler.identity(), server.handle().unwrap().identity());
    assert_eq!(handler.capabilities(), server.handle().unwrap().capabilities());
}

#[test]
fn interceptor_can_refuse_calls_and_change_calls_and_results() {
    let tool = Tool::new("hello").run(async || "a secret");
    let server = Server::new("test").with(tool).layer(|call: IncomingCall, next: Next| async move {
        if call.method == Method::ToolsList {
            return Err(Refusal::METHOD_NOT_FOUND);
        }
        let server = call.context.server().cloned();
        assert!(server.is_some(), "an interceptor of a server knows it");
        match next.run(call).await? {
            HandlerOutcome::Done(ServerResult::Tool(_)) => {
                Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::text("redacted"))))
            }
            other => Ok(other),
        }
    });
    assert_eq!(call_text(&server, "hello", &json!({})), "redacted");
    let list = crate::testing::answer(&server, Method::ToolsList, &json!({}));
    assert_refused(list, &Refusal::METHOD_NOT_FOUND, "");
}

fn slow(name: &str) -> Tool {
    Tool::new(name).run(async |cx: Context| {
        for done in 1..=1000 {
            cx.progress(done, 1000);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        "done"
    })
}

#[tokio::test(start_paused = true)]
async fn timeout_aborts_a_call_despite_progress_and_signals_spawned_tasks() {
    let told = Arc::new(AtomicUsize::new(0));
    let tell = told.clone();
    let starts = Tool::new("starts").run(move |cx: Context| {
        let tell = tell.clone();
        async move {
            let cancelled = cx.cancelled();
            tokio::spawn(async move {
                cancelled.await;
                tell.fetch_add(1, Ordering::SeqCst);
            });
            std::future::pending::<()>().await;
        }
    });
    let prompt = crate::Prompt::new("p").get(async || {
        std::future::pending::<()>().await;
        "never"
    });
    let server =
        Server::new("test").with((slow("slow"), starts, prompt)).layer(Timeout::new(Duration::from_secs(30)));
    let handle = server.handle().unwrap();
    let began = tokio::time::Instant::now();
    let answer = text(
        handle
            .call("slow", json!({}))
            .await
            .map(|result| HandlerOutcome::Done(ServerResult::Tool(result)))
            .unwrap(),
    );
    assert_eq!(answer, "!the call was ended: it took longer than 30s, the most that this server allows");
    assert_eq!(began.elapsed().as_secs(), 30);

    let running = tool_call("starts");
    let context = running.context.clone();
    assert!(text(Handler::call(&handle, running).await.unwrap()).contains("30s"));
    assert!(context.is_cancelled());
    tokio::task::yield_now().await;
    assert_eq!(told.load(Ordering::SeqCst), 1);

    let get = call(Revision::NEWEST, Method::PromptsGet, &json!({ "name": "p" }));
    assert_refused(Handler::call(&handle, get).await, &Refusal::TIMED_OUT, "30s");
}

#[tokio::test(start_paused = true)]
async fn timeout_beyond_the_clock_range_never_fires() {
    let server = Server::new("test").with(slow("slow")).layer(Timeout::new(Duration::MAX));
    let handle = server.handle().unwrap();
    let mut answer = std::pin::pin!(handle.call("slow", json!({})));
    assert!(tokio::time::timeout(Duration::from_secs(500), &mut answer).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn timeout_is_paused_while_an_input_request_is_open() {
    for (limit, expected) in [(41, "done"), (39, "!the call was ended")] {
        let limited = Timeout::new(Duration::from_secs(limit));
        let handle = Server::new("test").with(asks_in_between).layer(limited).handle().unwrap();
        let call = tool_call("asks");
        let context = call.context.clone();
        let answer = tokio::spawn(Handler::call(&handle, call));
        tokio::time::sleep(Duration::from_secs(21)).await;
        assert!(context.is_waiting());
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let yes = RawJson::from(&json!({ "action": "accept", "content": { "confirm": true } }));
        assert!(context.shared().deliver_response("q1", Ok(yes)));
        assert!(text(answer.await.unwrap().unwrap()).starts_with(expected), "{limit}");
    }
}

fn asks_in_between() -> Tool {
    Tool::new("asks").run(async |cx: Context| -> Result<&str, ToolError> {
        tokio::time::sleep(Duration::from_secs(20)).await;
        cx.ask(ask::<Confirm>("Go on?")).await?;
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok("done")
    })
}

fn call_of(principal: &str, tool: &str) -> IncomingCall {
    let capabilities = json!({ "elicitation": { "form": {} } });
    let caller = crate::Caller {
        principal: Principal::Named(principal.into()),
        ..caller(Revision::NEWEST, &capabilities)
    };
    crate::testing::call_from(caller, Method::ToolsCall, &json!({ "name": tool }))
}

#[test]
fn concurrency_limit_bounds_running_calls_per_principal() {
    let waits = Tool::new("waits").run(async || std::future::pending::<()>().await);
    let limit = ConcurrencyLimit::per_principal(2);
    let handle = Server::new("test").with(waits).layer(limit.clone()).handle().unwrap();
    let begin = |principal: &str| {
        let mut answer = Handler::call(&handle, call_of(principal, "waits"));
        match poll(&mut answer) {
            Poll::Pending => Ok(answer),
            Poll::Ready(answer) => Err(answer.unwrap_err()),
        }
    };
    let first = begin("ann").map_err(drop).unwrap();
    let second = begin("ann").map_err(drop).unwrap();
    let refusal = begin("ann").map(drop).unwrap_err();
    assert!(
        refusal.is_same_kind(&Refusal::TOO_MANY) && refusal.message().contains("at most 2 calls"),
        "{refusal:?}"
    );
    let other = begin("bob").map_err(drop).unwrap();
    // A caller that cancels drops the call.
    drop(first);
    let third = begin("ann").map_err(drop).unwrap();
    drop((second, third, other));
    assert!(limit.running.is_unused(), "nothing is kept of those who have nothing running");
}

#[test]
fn concurrency_limit_ignores_calls_waiting_for_input() {
    let asks =
        Tool::new("asks").run(async |cx: Context| cx.ask(ask::<Confirm>("Go on?")).await.map(|_| "done"));
    let quick = Tool::new("quick").run(async || "quick");
    let limit = ConcurrencyLimit::per_principal(1);
    let handle = Server::new("test").with((asks, quick)).layer(limit.clone()).handle().unwrap();
    let call = call_of("ann", "asks");
    let context = call.context.clone();
    let mut waiting = Handler::call(&handle, call);
    assert!(poll(&mut waiting).is_pending());
    assert!(limit.running.is_unused());
    assert_eq!(
        text(Handler::call(&handle, call_of("ann", "quick")).now_or_never().unwrap().unwrap()),
        "quick"
    );
    let yes = RawJson::from(&json!({ "action": "accept", "content": { "confirm": true } }));
    assert!(context.shared().deliver_response("q1", Ok(yes)));
    let Poll::Ready(answer) = poll(&mut waiting) else { panic!("the answer is there") };
    assert_eq!(text(answer.unwrap()), "done");
    drop(waiting);
    assert!(limit.running.is_unused());
}

/// Where a log is written to.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn call_span_has_session_and_trace_context() {
    let log = CapturedLog::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    let tool = Tool::new("hello").run(async || {
        tracing::info!("inside");
        "hi"
    });
    let handle = Server::new("test").with(tool).layer(Trace::new()).handle().unwrap();
    let session = SessionId::random();
    let caller = crate::Caller {
        request_id: Some(RequestId::from_text("r1")),
        session: Some(session),
        ..caller(Revision::V2025_11_25, &json!({}))
    };
    let params = json!({ "name": "hello" });
    let meta = json!({ "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" });
    let members = RawJson::from(&params).members().unwrap();
    let params = trunkline_protocol::Params { members, meta: Some(RawJson::from(&meta).members().unwrap()) };
    let scope = crate::call::CallScope::Sessionless(std::sync::Arc::default());
    let shared = crate::call::CallState::new(Method::ToolsCall, params, caller, Vec::new(), scope);
    let traced =
        IncomingCall { method: Method::ToolsCall, continuation: None, context: Context::new(shared) };
    tracing::subscriber::with_default(subscriber, || {
        Handler::call(&handle, traced).now_or_never().unwrap().unwrap();
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<_> = lines.iter().map(|line| line["fields"]["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["begins", "inside", "ends"], "{log}");
    for line in &lines {
        assert_eq!(
            line["span"],
            json!({
                "name": "call",
                "method": "tools/call",
                "revision": "2025-11-25",
                "request_id": "\"r1\"",
                "session": session.short().to_string(),
                "tool": "hello",
                "trace_id": "0af7651916cd43dd8448eb211c80319c",
                "parent_id": "b7ad6b7169203331",
            })
        );
    }
    assert!(!log.contains(&session.to_string()));
}
