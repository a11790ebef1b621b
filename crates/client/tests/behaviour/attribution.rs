//! Input requests on a channel, where no field names the call that they belong to: each gets one response all the same.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_client::protocol::{Refusal, Revision};
use trunkline_client::{BoxFuture, Client, InputHandler, InputOrigin};

use crate::support::{ScriptAction, ScriptedPeer, accept, or_handshake, settle, within};

/// Responds when the test allows it, and counts the input requests.
#[derive(Clone)]
struct GatedHandler {
    asked: Arc<std::sync::atomic::AtomicUsize>,
    allowed: Arc<Semaphore>,
}

impl GatedHandler {
    fn new() -> Self {
        Self { asked: Arc::default(), allowed: Arc::new(Semaphore::new(0)) }
    }

    fn asked(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl InputHandler for GatedHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_form().with_roots()
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Box::pin(async move {
            self.allowed.acquire().await.unwrap().forget();
            Ok(if question == InputRequest::Roots {
                InputResponse::Roots(Vec::new())
            } else {
                accept(&json!({}))
            })
        })
    }
}

async fn connect(slow: &GatedHandler) -> (ScriptedPeer, Client) {
    let (script, opener) = ScriptedPeer::new(|_, message| or_handshake(message, |_| ScriptAction::Wait));
    let builder = Client::builder().input(slow.clone()).pin(Revision::V2025_11_25);
    (script, within(builder.connect(opener)).await.unwrap())
}

fn ask(script: &ScriptedPeer, method: &str) {
    let params = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params });
    script.newest().receive(question.to_string());
}

fn finish(script: &ScriptedPeer, id: u64) {
    let result = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } });
    script.newest().receive(result.to_string());
}

/// Returns what was answered to the question.
fn answers(script: &ScriptedPeer) -> Vec<Value> {
    script.sent().remove(0).into_iter().filter(|sent| sent["id"] == "q").collect()
}

fn call(client: &Client) -> tokio::task::JoinHandle<bool> {
    let call = client.call("t", json!({})).into_future();
    tokio::spawn(async move { call.await.is_ok() })
}

#[tokio::test(start_paused = true)]
async fn input_request_is_answered_after_its_call_has_ended() {
    let slow = GatedHandler::new();
    let (script, client) = connect(&slow).await;
    let (first, second) = (call(&client), call(&client));
    settle().await;
    ask(&script, "elicitation/create");
    settle().await;
    finish(&script, 2);
    assert!(within(first).await.unwrap(), "the first is over and waits for nobody's answer");
    slow.allowed.add_permits(1);
    settle().await;
    assert_eq!(answers(&script).len(), 1);
    assert_eq!(answers(&script)[0]["result"]["action"], "accept");
    assert_eq!(slow.asked(), 1, "nobody is asked twice");
    finish(&script, 3);
    assert!(within(second).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn input_request_is_routed_to_another_call_when_its_call_is_dropped() {
    let slow = GatedHandler::new();
    let (script, client) = connect(&slow).await;
    let (first, second) = (call(&client), call(&client));
    settle().await;
    ask(&script, "elicitation/create");
    settle().await;
    first.abort();
    settle().await;
    slow.allowed.add_permits(8);
    settle().await;
    assert_eq!(answers(&script).len(), 1);
    assert_eq!(answers(&script)[0]["result"]["action"], "accept");
    finish(&script, 3);
    assert!(within(second).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn input_request_ends_with_the_only_call_that_could_have_caused_it() {
    let slow = GatedHandler::new();
    let (script, client) = connect(&slow).await;
    for finishes in [true, false] {
        script.newest().clear_sent();
        let only = call(&client);
        settle().await;
        let id = script.sent()[0].last().unwrap()["id"].as_u64().unwrap();
        let before = slow.asked();
        ask(&script, "elicitation/create");
        settle().await;
        assert_eq!(slow.asked(), before + 1);
        if finishes {
            finish(&script, id);
            assert!(within(only).await.unwrap());
        } else {
            only.abort();
        }
        settle().await;
        // The server may get a second refusal after the end of the call, and the handler is not called again.
        assert!(answers(&script).iter().all(|answer| answer.get("error").is_some()));
        assert_eq!(slow.asked(), before + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn roots_request_is_answered_although_the_concurrent_call_ends() {
    for finishes in [true, false] {
        let slow = GatedHandler::new();
        let (script, client) = connect(&slow).await;
        let only = call(&client);
        settle().await;
        ask(&script, "roots/list");
        settle().await;
        if finishes {
            finish(&script, 2);
            assert!(within(only).await.unwrap());
        } else {
            only.abort();
        }
        settle().await;
        slow.allowed.add_permits(8);
        settle().await;
        assert_eq!(answers(&script).len(), 1, "finishes: {finishes}");
        assert_eq!(answers(&script)[0]["result"]["roots"], json!([]));
    }
}

#[tokio::test(start_paused = true)]
async fn roots_request_before_a_ping_response_is_open_until_its_answer_is_sent() {
    let slow = GatedHandler::new();
    let (script, client) = connect(&slow).await;
    within(client.session_requests_answered()).await;
    let pinging = {
        let client = client.clone();
        tokio::spawn(async move { client.ping().await.is_ok() })
    };
    let ping = script.wait_for("ping").await;
    ask(&script, "roots/list");
    finish(&script, ping["id"].as_u64().unwrap());
    assert!(within(pinging).await.unwrap());
    let mut answered = std::pin::pin!(client.session_requests_answered());
    settle().await;
    assert!(answered.as_mut().now_or_never().is_none());
    slow.allowed.add_permits(1);
    within(answered).await;
    assert_eq!(answers(&script).len(), 1);
}

/// On real threads, where questions, answers and ends of calls cross each other in every way.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_calls_of_many_threads_with_input_requests_all_complete() {
    use trunkline_client::protocol::model::FormElicitRequest;

    let answers = crate::support::Answers::new(|question| {
        let InputRequest::Form(FormElicitRequest { schema, .. }) = question else {
            return Ok(InputResponse::Roots(Vec::new()));
        };
        let schema: Value = schema.decode().unwrap();
        let name = schema["properties"].as_object().unwrap().keys().next().unwrap().clone();
        Ok(accept(&json!({ name: true })))
    });
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = crate::support::server(&crate::support::Life::default()).host(Default::default()).unwrap();
        let client = crate::support::connect(&host, revision, Client::builder().input(answers.clone())).await;
        for _ in 0..20 {
            let calls: Vec<_> = (0..16)
                .map(|number| {
                    let call = client.call("in_sequence", json!({})).into_future();
                    // Every fourth is given up in the middle of it.
                    let given_up = async move {
                        for _ in 0..if number % 4 == 0 { number } else { usize::MAX } {
                            tokio::task::yield_now().await;
                        }
                    };
                    tokio::spawn(async move {
                        tokio::select! {
                            result = call => result.unwrap().text(),
                            () = given_up => "true true".to_owned(),
                        }
                    })
                })
                .collect();
            for call in calls {
                let ended = tokio::time::timeout(std::time::Duration::from_secs(60), call).await;
                assert_eq!(ended.expect("it ends").unwrap(), "true true", "{revision}");
            }
        }
    }
}
