//! Suspended calls, which wait for the request with their responses: they continue to run meanwhile, and are bounded.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use trunkline_server::protocol::LoggingLevel;
use trunkline_server::{Confirm, Context, Server, ServerLimits, Tool, ToolError, TypedInputRequest, ask};

use crate::input_rounds::accept;
use crate::support::{
    Client, LiveCount, ModernRequest, Peer, code, host, host_with, lines, note, questions, service, settle,
    text, tool_text, within,
};

fn sure() -> TypedInputRequest<Confirm> {
    ask("Sure?").key("sure")
}

fn answered(tool: &str, asked: &Value) -> ModernRequest {
    ModernRequest::tool(tool).id("retry").after(asked).answers(json!({ "sure": accept(true) }))
}

/// A tool that requests input and works at the same time; the work begins when the gate is opened.
fn busy(gate: &Arc<Notify>) -> Tool {
    let gate = gate.clone();
    Tool::new("busy").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
        let gate = gate.clone();
        async move {
            let work = async {
                gate.notified().await;
                for step in 1..=3 {
                    cx.progress(step, 3);
                }
                cx.log(LoggingLevel::Debug, "fine");
                cx.log(LoggingLevel::Warning, "grave");
            };
            let (sure, ()) = tokio::join!(cx.ask(sure()), work);
            Ok::<_, ToolError>(sure?.0.to_string())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn notifications_of_a_suspended_call_go_to_the_next_round() {
    let gate = Arc::new(Notify::new());
    let host = host(&Server::new("s").with(busy(&gate)));
    let progress = |token: &str| {
        note("notifications/progress", json!({ "progressToken": token, "progress": 3, "total": 3 }))
    };
    let grave = note("notifications/message", json!({ "level": "warning", "data": "grave" }));
    let fine = note("notifications/message", json!({ "level": "debug", "data": "fine" }));
    let plain = |request: ModernRequest| request;
    for (retry, said) in [
        (plain as fn(ModernRequest) -> ModernRequest, vec![]),
        (|request| request.token("second"), vec![progress("second")]),
        (|request| request.level("info"), vec![grave.clone()]),
        (|request| request.token("t").level("debug"), vec![progress("t"), fine.clone(), grave.clone()]),
    ] {
        for mut line in lines(&host) {
            let asked = line.call(&ModernRequest::tool("busy").token("first").level("debug")).await;
            gate.notify_one();
            settle().await;
            let mut messages = line.exchange(&retry(answered("busy", &asked))).await;
            assert_eq!(tool_text(&messages.pop().unwrap()), "true");
            assert_eq!(messages, said);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn logs_of_a_suspended_call_are_bounded_and_drop_the_oldest() {
    let gate = Arc::new(Notify::new());
    let tool = {
        let gate = gate.clone();
        Tool::new("chatty").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
            let gate = gate.clone();
            async move {
                let work = async {
                    gate.notified().await;
                    for n in 0..10_000 {
                        cx.log(LoggingLevel::Info, n);
                    }
                };
                let (sure, ()) = tokio::join!(cx.ask(sure()), work);
                Ok::<_, ToolError>(sure?.0.to_string())
            }
        })
    };
    let host = host(&Server::new("s").with(tool));
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("chatty")).await;
        gate.notify_one();
        settle().await;
        let messages = line.exchange(&answered("chatty", &asked).level("info")).await;
        assert!(messages.len() < 100, "{}", messages.len());
        assert_eq!(messages[messages.len() - 2]["params"]["data"], 9_999);
    }
}

/// A tool that waits for its answer or for the gate, whichever comes first.
fn impatient(gate: &Arc<Notify>, then: fn() -> String) -> Tool {
    let gate = gate.clone();
    Tool::new("impatient").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
        let gate = gate.clone();
        async move {
            tokio::select! {
                sure = cx.ask(sure()) => Ok::<_, ToolError>(sure?.0.to_string()),
                () = gate.notified() => Ok(then()),
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn result_of_a_call_that_ends_while_suspended_goes_to_the_retry() {
    let gate = Arc::new(Notify::new());
    let host = host(&Server::new("s").with(impatient(&gate, || "gave up".to_owned())));
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("impatient")).await;
        gate.notify_one();
        settle().await;
        assert_eq!(host.load(), (0, 1), "the result waits");
        let answer = line.call(&answered("impatient", &asked)).await;
        assert_eq!(tool_text(&answer), "gave up");
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_suspended_call_is_an_internal_error_to_the_retry() {
    let gate = Arc::new(Notify::new());
    let host = host(&Server::new("s").with(impatient(&gate, || panic!("while parked"))));
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("impatient")).await;
        gate.notify_one();
        settle().await;
        assert_eq!(code(&line.call(&answered("impatient", &asked)).await), -32603);
    }
}

/// A tool that requests input, with a count of its live futures.
fn watched(life: &LiveCount) -> Tool {
    let life = life.clone();
    Tool::new("watched").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
        let alive = life.begin();
        async move {
            let sure = cx.ask(sure()).await?;
            drop(alive);
            Ok::<_, ToolError>(sure.0.to_string())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn principal_over_its_limit_loses_only_its_own_oldest_suspended_call() {
    let life = LiveCount::default();
    let limits = ServerLimits { suspended_per_principal: 2, ..ServerLimits::default() };
    let host = host_with(&Server::new("s").with(watched(&life)), limits);
    let service = service(&host);
    let [ann, bob] = ["ann", "bob"].map(|name| Client::of(&service).named(name));
    let mut asked = Vec::new();
    for client in [&bob, &ann, &ann, &ann] {
        asked.push(client.post(&ModernRequest::tool("watched").value()).await.answer().await);
        assert_eq!(questions(asked.last().unwrap()), ["sure"], "a new call is never refused");
    }
    settle().await;
    assert_eq!((host.load(), life.count()), ((0, 3), 3));
    for (client, asked, ok) in
        [(&bob, &asked[0], true), (&ann, &asked[1], false), (&ann, &asked[2], true), (&ann, &asked[3], true)]
    {
        let answer = client.post(&answered("watched", asked).value()).await.answer().await;
        assert_eq!(answer.get("error").is_none(), ok, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn oldest_suspended_call_is_evicted_over_the_total_limit() {
    let life = LiveCount::default();
    let host = host_with(
        &Server::new("s").with(watched(&life)),
        ServerLimits { suspended: 2, ..ServerLimits::default() },
    );
    let client = Client::new(&host);
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(client.post(&ModernRequest::tool("watched").value()).await.answer().await);
    }
    settle().await;
    assert_eq!((host.load(), life.count()), ((0, 2), 2));
    for (asked, ok) in asked.iter().zip([false, false, true, true]) {
        let answer = client.post(&answered("watched", asked).value()).await.answer().await;
        assert_eq!(answer.get("error").is_none(), ok, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn draining_ends_suspended_calls() {
    let life = LiveCount::default();
    let host = host(&Server::new("s").with(watched(&life)));
    for mut line in lines(&host) {
        line.call(&ModernRequest::tool("watched")).await;
    }
    assert_eq!((host.load(), life.count()), ((0, 2), 2));
    host.shutdown().drain();
    settle().await;
    assert_eq!((host.load(), life.count()), ((0, 0), 0));
}

/// A tool that requests input and then runs for ever.
fn endless(life: &LiveCount) -> Tool {
    let life = life.clone();
    Tool::new("endless").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
        let alive = life.begin();
        async move {
            cx.ask(sure()).await?;
            std::future::pending::<()>().await;
            drop(alive);
            Ok::<_, ToolError>("never")
        }
    })
}

#[tokio::test(start_paused = true)]
async fn resumed_channel_call_can_be_cancelled_and_reserves_its_id() {
    let life = LiveCount::default();
    let host = host(&Server::new("s").with(endless(&life)));
    let mut peer = Peer::new(&host);
    let asked = peer.call(&ModernRequest::tool("endless").id(1).value()).await;
    peer.send(&answered("endless", &asked).id(2).value()).await;
    assert!(peer.received().await.is_empty());
    assert_eq!(host.load(), (1, 0));
    let reused = peer.call(&ModernRequest::tool("endless").id(2).value()).await;
    assert_eq!(code(&reused), -32600);
    peer.send(&note("notifications/cancelled", json!({ "requestId": 2 }))).await;
    assert!(peer.received().await.is_empty(), "a cancelled request is not answered");
    assert_eq!((host.load(), life.count()), ((0, 0), 0));
    let again = peer.call(&ModernRequest::tool("endless").id(2).value()).await;
    assert_eq!(questions(&again), ["sure"], "the id is free again");
}

#[tokio::test(start_paused = true)]
async fn disconnecting_from_a_resumed_call_cancels_it() {
    let life = LiveCount::default();
    let host = host(&Server::new("s").with(endless(&life)));
    let client = Client::new(&host);
    let asked = client.post(&ModernRequest::tool("endless").value()).await.answer().await;
    let stream = client.post(&answered("endless", &asked).value()).await;
    assert!(stream.is_stream());
    assert_eq!((host.load(), life.count()), ((1, 0), 1));
    drop(stream);
    assert_eq!((host.load(), life.count()), ((0, 0), 0));
}

#[tokio::test(start_paused = true)]
async fn input_request_made_while_suspended_joins_the_next_round() {
    let gate = Arc::new(Notify::new());
    let tool = {
        let gate = gate.clone();
        Tool::new("late").input_schema(json!({ "type": "object" })).run_raw(move |cx: Context, _| {
            let gate = gate.clone();
            async move {
                let late = async {
                    gate.notified().await;
                    cx.ask(ask::<Confirm>("Late?").key("late")).await
                };
                let (first, late) = tokio::join!(cx.ask(sure()), late);
                Ok::<_, ToolError>(format!("{} {}", first?.0, late?.0))
            }
        })
    };
    let host = host(&Server::new("s").with(tool));
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("late")).await;
        assert_eq!(questions(&asked), ["sure"]);
        gate.notify_one();
        settle().await;
        let asked = line.call(&answered("late", &asked)).await;
        assert_eq!(questions(&asked), ["late"]);
        let answers = json!({ "late": accept(false) });
        let answer = line.call(&ModernRequest::tool("late").id(3).after(&asked).answers(answers)).await;
        assert_eq!(text(&answer), "true false");
    }
}

#[tokio::test(start_paused = true)]
async fn timer_inside_a_suspended_call_keeps_running() {
    let tool = Tool::new("timed").run(async |cx: Context| -> Result<String, ToolError> {
        match tokio::time::timeout(Duration::from_secs(5), cx.ask(sure())).await {
            Ok(sure) => Ok(sure?.0.to_string()),
            Err(_) => Ok("too late".to_owned()),
        }
    });
    let host = host(&Server::new("s").with(tool));
    for mut line in lines(&host) {
        let asked = line.call(&ModernRequest::tool("timed")).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        let answer = within(line.call(&answered("timed", &asked))).await;
        assert_eq!(tool_text(&answer), "too late");
    }
}
