//! Servers that ask too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_client::protocol::{Refusal, Revision};
use trunkline_client::{BoxFuture, Client, ClientBuilder, ClientLimits, Error, InputHandler, InputOrigin};

use crate::peer::{ScriptedChannel, call, connect_with, soon, text_result};

/// Answers every form at once, and counts how many are open at one time.
#[derive(Clone, Default)]
struct ImmediateHandler {
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl InputHandler for ImmediateHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_form().with_roots()
    }

    fn answer(&self, _: InputOrigin, _: InputRequest) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        Box::pin(async {
            tokio::task::yield_now().await;
            self.open.fetch_sub(1, Ordering::SeqCst);
            Ok(InputResponse::decline())
        })
    }
}

/// Answers nothing, ever.
struct SilentHandler;

impl InputHandler for SilentHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_form().with_roots()
    }

    fn answer(&self, _: InputOrigin, _: InputRequest) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        Box::pin(std::future::pending())
    }
}

fn form(id: usize) -> Value {
    let params = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    json!({ "jsonrpc": "2.0", "id": format!("q{id}"), "method": "elicitation/create", "params": params })
}

fn builder(input: impl InputHandler) -> ClientBuilder {
    Client::builder().input(input).limits(ClientLimits { queued_bytes: 64 * 1024, ..ClientLimits::default() })
}

#[tokio::test(start_paused = true)]
async fn modern_server_exceeding_the_input_rounds_is_stopped() {
    let script = async |mut peer: ScriptedChannel| {
        let mut rounds = 0;
        while let Some(message) = peer.next().await {
            if message["method"] != "tools/call" {
                continue;
            }
            if message["params"]["name"] == "sane" {
                peer.answer(&message["id"], text_result(&format!("{rounds} rounds"))).await;
                continue;
            }
            rounds += 1;
            let params = form(0)["params"].clone();
            let question = json!({ "method": "elicitation/create", "params": params });
            let result = json!({ "resultType": "input_required", "inputRequests": { "a": question }, "requestState": "s" });
            peer.answer(&message["id"], result).await;
        }
    };
    let client =
        connect_with(builder(ImmediateHandler::default()), Revision::V2026_07_28, script).await.unwrap();
    let error = soon("the call", call(&client, "asks")).await.unwrap_err();
    assert!(matches!(error, Error::InputDeclined(_)), "{error}");
    assert!(error.to_string().contains("asked more than 10 times"), "{error}");
    // The first request, and ten that answered.
    assert_eq!(call(&client, "sane").await.unwrap(), "11 rounds");
}

#[tokio::test(start_paused = true)]
async fn legacy_server_exceeding_the_input_rounds_is_stopped() {
    let script = async |mut peer: ScriptedChannel| {
        let (id, _) = peer.call().await;
        for number in 0.. {
            peer.send(form(number)).await;
            match peer.next().await {
                Some(message) if message["id"] == format!("q{number}") => {}
                // The client ends the call, and sends a cancellation.
                Some(message) => {
                    assert_eq!(message["params"]["requestId"], id);
                    break;
                }
                None => return,
            }
        }
        peer.serve_calls().await;
    };
    let client =
        connect_with(builder(ImmediateHandler::default()), Revision::V2025_11_25, script).await.unwrap();
    let error = soon("the call", call(&client, "asks")).await.unwrap_err();
    assert!(error.to_string().contains("asked more than 10 times"), "{error}");
    assert_eq!(soon("a call after it", call(&client, "sane")).await.unwrap(), "sane");
}

#[tokio::test(start_paused = true)]
async fn input_request_flood_within_a_call_is_refused_beyond_the_limit() {
    const FLOOD: usize = 5_000;
    let eager = ImmediateHandler::default();
    let script = async |mut peer: ScriptedChannel| {
        let (id, _) = peer.call().await;
        let mut flood = String::new();
        for number in 0..FLOOD {
            flood.push_str(&format!("{}\n", form(number)));
        }
        let mut refused = 0;
        let ScriptedChannel { reader, writer } = &mut peer;
        // It writes them all at once, and reads what comes back meanwhile.
        let writing = tokio::io::AsyncWriteExt::write_all(writer, flood.as_bytes());
        let reading = async {
            for _ in 0..FLOOD {
                let mut line = String::new();
                tokio::io::AsyncBufReadExt::read_line(reader, &mut line).await.unwrap();
                let answer: Value = serde_json::from_str(&line).unwrap();
                refused += usize::from(answer["error"].is_object());
            }
        };
        let (written, ()) = tokio::join!(writing, reading);
        written.unwrap();
        peer.answer_text(&id, &format!("{refused}")).await;
        peer.serve_calls().await;
    };
    let client = connect_with(builder(eager.clone()), Revision::V2025_11_25, script).await.unwrap();
    let refused = soon("the call", call(&client, "asks")).await;
    let most = eager.most.load(Ordering::SeqCst);
    assert!(most <= 64, "{most} questions were open at one time");
    let refused: usize = refused.unwrap().parse().unwrap();
    assert!(refused > 0 && refused < FLOOD, "{refused}");
    assert_eq!(call(&client, "sane").await.unwrap(), "sane");
}

#[tokio::test(start_paused = true)]
async fn input_requests_without_reading_responses_are_bounded_and_time_out() {
    // Within a call, and outside of any; questions that can be answered, that cannot, and pings.
    let questions: [fn(usize) -> Value; 3] = [
        form,
        |id| json!({ "jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {} }),
        |id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }),
    ];
    for question in questions {
        for within_call in [true, false] {
            let script = async move |mut peer: ScriptedChannel| {
                if within_call {
                    peer.call().await;
                }
                // Enough to fill any buffer on the way several times over, if each was answered.
                for number in 0..50_000 {
                    if !peer.bytes(format!("{}\n", question(number)).as_bytes()).await {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            };
            let client = connect_with(builder(ImmediateHandler::default()), Revision::V2025_11_25, script)
                .await
                .unwrap();
            let began = tokio::time::Instant::now();
            let error = soon("the call", call(&client, "asks")).await.unwrap_err();
            assert!(
                matches!(error, Error::TimedOut { .. } | Error::InputDeclined(_) | Error::Closed { .. }),
                "{within_call}: {error}"
            );
            assert!(
                began.elapsed() <= ClientLimits::default().max_total_timeout,
                "{within_call}: {:?}",
                began.elapsed()
            );
            soon("the end", client.close()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn input_requests_outside_of_calls_are_answered_up_to_the_limit() {
    let (tell, flooded) = tokio::sync::oneshot::channel();
    let script = async |mut peer: ScriptedChannel| {
        for number in 0..200 {
            peer.send(json!({ "jsonrpc": "2.0", "id": number, "method": "roots/list" })).await;
        }
        let mut refused = 0;
        // Input requests beyond the limit are refused at once; the others wait for a handler that never responds.
        while refused < 100 {
            let Some(message) = peer.next().await else { return };
            refused += usize::from(message["error"].is_object());
        }
        tell.send(()).unwrap();
        peer.serve_calls().await;
    };
    let client = connect_with(builder(SilentHandler), Revision::V2025_11_25, script).await.unwrap();
    soon("the flood", flooded).await.unwrap();
    assert_eq!(soon("a call", call(&client, "sane")).await.unwrap(), "sane");
}

#[tokio::test(start_paused = true)]
async fn response_before_the_input_response_completes_the_call() {
    let script = async |mut peer: ScriptedChannel| {
        let (id, _) = peer.call().await;
        peer.send(form(0)).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        peer.answer_text(&id, "never mind").await;
        peer.serve_calls().await;
    };
    let client = connect_with(builder(SilentHandler), Revision::V2025_11_25, script).await.unwrap();
    assert_eq!(soon("the call", call(&client, "asks")).await.unwrap(), "never mind");
    assert_eq!(call(&client, "sane").await.unwrap(), "sane");
}
