//! Which call an input request on a channel belongs to, where no field of the request names it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_client::protocol::{LoggingLevel, Revision};
use trunkline_client::{Client, LogMessage};
use trunkline_config::ConnectionSharing;
use trunkline_hub::{Hub, HubLimits};

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, ScriptedServer, TestServers, client, lazy, named_principal,
    quick, say, script, serve_hub, text_result, until, within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

/// A hub that opens a further connection as soon as one is needed.
fn eager_to_grow() -> HubLimits {
    HubLimits { extra_connection_delay: Duration::ZERO, ..quick() }
}

/// A hub that has one connection to each server, which calls wait for.
fn one_connection() -> HubLimits {
    HubLimits { connections_per_server: 1, extra_connection_delay: Duration::ZERO, ..quick() }
}

/// A legacy server with calls that end when the test allows it.
async fn patient(limits: HubLimits) -> (ScriptedServer, TestServers, Hub) {
    patient_and_shared(limits, ConnectionSharing::default()).await
}

async fn patient_and_shared(
    limits: HubLimits,
    share: ConnectionSharing,
) -> (ScriptedServer, TestServers, Hub) {
    let town = TestServers::default();
    let (heard, opener) = script(|_, message| match message["method"].as_str() {
        Some("tools/call") => ScriptReply::Nothing,
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, OLD);
    let hub = town.hub_within(limits);
    let mut config = lazy("a");
    config.sharing = share;
    within(hub.set_servers(vec![config])).await;
    (heard, town, hub)
}

/// Accepts every form.
fn agreeable() -> RecordingHandler {
    RecordingHandler::new(|_| Ok(InputResponse::accept(Some(json!({ "ok": true }).into()))))
        .declaring(ClientCapabilities::default().with_form())
}

async fn connect(hub: &Hub, who: &str, down: Revision, answers: &RecordingHandler) -> Client {
    client(&serve_hub(hub), Client::builder().pin(down).input(answers.clone()), named_principal(who)).await
}

fn call(client: &Client) -> JoinHandle<String> {
    let client = client.clone();
    tokio::spawn(async move { say(&client, "a__t").await })
}

/// Calls with the name of the client as an argument, by which the server's side knows it.
fn call_as(client: &Client, name: &str) -> JoinHandle<Result<String, trunkline_client::Error>> {
    let call = client.call("a__t", json!({ "name": name })).into_future();
    tokio::spawn(async move { within(call).await.map(|said| said.text()) })
}

fn question(id: &str) -> Value {
    let schema =
        json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    let params = json!({ "message": id, "requestedSchema": schema });
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params })
}

fn asked(answers: &RecordingHandler) -> Vec<String> {
    let asked = answers.asked().into_iter().map(|question| match question {
        InputRequest::Form(form) => form.message,
        other => panic!("{other:?}"),
    });
    asked.collect()
}

#[tokio::test]
async fn input_request_reaches_its_own_client_beside_an_older_call_of_another() {
    for down in BOTH {
        let (heard, _town, hub) = patient(eager_to_grow()).await;
        let (slow, asking) = (agreeable(), agreeable());
        let first = call(&connect(&hub, "ada", down, &slow).await);
        heard.received("tools/call", 1).await;
        // The other client of the same principal gets a connection of its own as long as the first is in use.
        let second = call(&connect(&hub, "ada", down, &asking).await);
        heard.received("tools/call", 2).await;
        assert_eq!([0, 1].map(|number| heard.of_connection(number, "tools/call").len()), [1, 1], "{down}");
        heard.connection(1).receive(question("of the second").to_string());
        let answer = heard.answered(&json!("of the second")).await;
        assert_eq!(answer["result"], json!({ "action": "accept", "content": { "ok": true } }), "{down}");
        assert_eq!((asked(&slow), asked(&asking)), (vec![], vec!["of the second".to_owned()]), "{down}");
        heard.connection(0).receive(question("of the first").to_string());
        heard.answered(&json!("of the first")).await;
        assert_eq!((asked(&slow).len(), asked(&asking).len()), (1, 1), "{down}");
        for (number, running, name) in [(1, second, "second"), (0, first, "first")] {
            heard.answer_over(number, &heard.of_connection(number, "tools/call")[0], text_result(name));
            assert_eq!(within(running).await.unwrap(), name, "{down}");
        }
    }
}

#[tokio::test]
async fn connection_is_reused_before_another_is_opened() {
    for down in BOTH {
        let (heard, _town, hub) =
            patient(HubLimits { extra_connection_delay: Duration::from_secs(3600), ..quick() }).await;
        let answers = agreeable();
        let clients =
            [connect(&hub, "ada", down, &answers).await, connect(&hub, "ada", down, &answers).await];
        let first = call(&clients[0]);
        let calls = heard.received("tools/call", 1).await;
        let second = call(&clients[1]);
        until(|| hub.status_of("a").unwrap().waiting == 1).await;
        assert_eq!(heard.of("tools/call").len(), 1, "{down}: the other waits for its turn");
        heard.answer(&calls[0], text_result("first"));
        assert_eq!(within(first).await.unwrap(), "first");
        let calls = heard.received("tools/call", 2).await;
        heard.send(&question("second"));
        heard.answered(&json!("second")).await;
        heard.answer(&calls[1], text_result("second"));
        assert_eq!(within(second).await.unwrap(), "second");
        assert_eq!(hub.status_of("a").unwrap().connections, 1, "{down}");
    }
}

#[tokio::test]
async fn connections_grow_to_the_limit_and_then_calls_queue() {
    for down in BOTH {
        let limits = HubLimits { connections_per_server: 3, ..eager_to_grow() };
        let (heard, _town, hub) = patient(limits).await;
        let answers = agreeable();
        within(connect(&hub, "ada", down, &answers).await.tools()).await.unwrap();
        let mut calls = Vec::new();
        for _ in 0..5 {
            calls.push(call(&connect(&hub, "ada", down, &answers).await));
        }
        heard.received("tools/call", 3).await;
        until(|| hub.status_of("a").unwrap().waiting == 2).await;
        assert_eq!((heard.open(), heard.of("tools/call").len()), (3, 3), "{down}");
        for number in [0, 1] {
            // Each that ends lets one of those that wait begin, over the same connection.
            heard.answer_over(number, &heard.of_connection(number, "tools/call")[0], text_result("done"));
            heard.received("tools/call", 4 + number).await;
            assert_eq!(heard.of_connection(number, "tools/call").len(), 2, "{down}");
        }
        for (number, at) in [(0, 1), (1, 1), (2, 0)] {
            heard.answer_over(number, &heard.of_connection(number, "tools/call")[at], text_result("done"));
        }
        for call in calls {
            assert_eq!(within(call).await.unwrap(), "done", "{down}");
        }
        assert_eq!(heard.of("initialize").len(), 3, "{down}");
    }
}

#[tokio::test]
async fn calls_of_one_session_share_a_process_and_get_its_input_requests() {
    let (heard, _town, hub) = patient(eager_to_grow()).await;
    let (own, others) = (agreeable(), agreeable());
    let client = connect(&hub, "ada", OLD, &own).await;
    let calls = [call(&client), call(&client), call(&client)];
    let sent = heard.received("tools/call", 3).await;
    // Another client comes and goes over a connection of its own.
    let other = call(&connect(&hub, "ada", OLD, &others).await);
    heard.received("tools/call", 4).await;
    for id in ["one", "two"] {
        heard.connection(0).receive(question(id).to_string());
        heard.answered(&json!(id)).await;
    }
    assert_eq!((asked(&own).len(), asked(&others).len()), (2, 0));
    heard.answer_over(1, &heard.of_connection(1, "tools/call")[0], text_result("other"));
    assert_eq!(within(other).await.unwrap(), "other");
    sent.iter().for_each(|call| heard.answer_over(0, call, text_result("own")));
    for call in calls {
        assert_eq!(within(call).await.unwrap(), "own");
    }
    assert_eq!(heard.of("initialize").len(), 2);
}

#[tokio::test]
async fn calls_without_a_session_get_only_their_own_input_requests() {
    let (heard, _town, hub) = patient(eager_to_grow()).await;
    let answers = agreeable();
    let client = connect(&hub, "ada", NEW, &answers).await;
    within(client.tools()).await.unwrap();
    let running: Vec<_> = ["a", "b", "c"].map(|name| call_as(&client, name)).into();
    heard.received("tools/call", 3).await;
    for number in 0..3 {
        let calls = heard.of_connection(number, "tools/call");
        let [only] = calls.as_slice() else { panic!("one at a time: {calls:?}") };
        heard.answer_over(number, only, text_result(only["params"]["arguments"]["name"].as_str().unwrap()));
    }
    for (call, name) in running.into_iter().zip(["a", "b", "c"]) {
        assert_eq!(within(call).await.unwrap().unwrap(), name);
    }
}

#[tokio::test]
async fn call_without_a_connection_in_time_gets_a_retryable_error_naming_the_server() {
    for down in BOTH {
        let limits = HubLimits { connection_wait_timeout: Duration::from_millis(50), ..one_connection() };
        let (heard, _town, hub) = patient(limits).await;
        let clients = [agreeable(), agreeable()];
        let first = call(&connect(&hub, "ada", down, &clients[0]).await);
        let calls = heard.received("tools/call", 1).await;
        let refused = call_as(&connect(&hub, "ada", down, &clients[1]).await, "late");
        let Err(trunkline_client::Error::ErrorResponse(refused)) = within(refused).await.unwrap() else {
            panic!("it is not refused")
        };
        assert!(refused.message.starts_with("upstream `a` unavailable: "), "{down}: {}", refused.message);
        let data: Value = refused.data.unwrap().decode().unwrap();
        assert_eq!(data, json!({ "upstream": "a", "reason": "too_many", "retryable": true }), "{down}");
        heard.answer(&calls[0], text_result("first"));
        assert_eq!(within(first).await.unwrap(), "first");
    }
}

#[tokio::test]
async fn waiting_clients_get_connections_round_robin_whatever_their_call_count() {
    let (heard, _town, hub) = patient(one_connection()).await;
    let answers = agreeable();
    let [many, one, other] = [
        connect(&hub, "ada", OLD, &answers).await,
        connect(&hub, "ada", OLD, &answers).await,
        connect(&hub, "ada", OLD, &answers).await,
    ];
    let waiting = |count: usize| {
        let hub = hub.clone();
        until(move || hub.status_of("a").unwrap().waiting == count)
    };
    let mut calls = vec![call_as(&many, "many")];
    heard.received("tools/call", 1).await;
    calls.push(call_as(&one, "one"));
    waiting(1).await;
    // From here on the client that has the connection waits too, since another does.
    calls.extend((0..20).map(|_| call_as(&many, "many")));
    waiting(21).await;
    calls.push(call_as(&other, "other"));
    waiting(22).await;
    let mut order = Vec::new();
    for number in 0..calls.len() {
        let sent = heard.received("tools/call", number + 1).await;
        order.push(sent[number]["params"]["arguments"]["name"].as_str().unwrap().to_owned());
        heard.answer(&sent[number], text_result("done"));
    }
    for call in calls {
        assert_eq!(within(call).await.unwrap().unwrap(), "done");
    }
    assert_eq!(order[..5], ["many", "one", "many", "other", "many"], "{order:?}");
}

#[tokio::test]
async fn call_cancelled_while_queued_takes_no_connection() {
    for down in BOTH {
        let (heard, _town, hub) = patient(one_connection()).await;
        let answers = agreeable();
        let mut calls = Vec::new();
        for number in 0..3 {
            calls.push(call(&connect(&hub, "ada", down, &answers).await));
            heard.received("tools/call", 1).await;
            until(|| hub.status_of("a").unwrap().waiting == number).await;
        }
        calls[1].abort();
        until(|| hub.status_of("a").unwrap().waiting == 1).await;
        for (at, number) in [(0, 0), (1, 2)] {
            let sent = heard.received("tools/call", at + 1).await;
            heard.answer(&sent[at], text_result("done"));
            assert_eq!(within(&mut calls[number]).await.unwrap(), "done", "{down}");
        }
        assert_eq!(heard.of("tools/call").len(), 2, "{down}");
    }
}

#[tokio::test]
async fn input_request_of_an_abandoned_call_never_reaches_another_client() {
    for down in BOTH {
        let (heard, _town, hub) = patient(eager_to_grow()).await;
        let (leaving, staying) = (agreeable(), agreeable());
        let given_up = call(&connect(&hub, "ada", down, &leaving).await);
        heard.received("tools/call", 1).await;
        given_up.abort();
        heard.received("notifications/cancelled", 1).await;
        // The server continues the cancelled call and requests input, while the call of another client runs.
        let running = call(&connect(&hub, "ada", down, &staying).await);
        heard.received("tools/call", 2).await;
        heard.connection(0).receive(question("too late").to_string());
        let answer = heard.answered(&json!("too late")).await;
        assert_eq!(answer["result"], json!({ "action": "cancel" }), "{down}: {answer}");
        assert!(asked(&staying).is_empty() && asked(&leaving).is_empty(), "{down}");
        let calls = heard.of_connection(1, "tools/call");
        assert_eq!(calls.len(), 1, "{down}: it runs over a connection on which nothing else can be asked");
        heard.answer_over(1, &calls[0], text_result("done"));
        assert_eq!(within(running).await.unwrap(), "done", "{down}");
    }
}

#[tokio::test]
async fn connection_is_shared_again_after_the_server_answers_an_abandoned_call() {
    for down in BOTH {
        let (heard, _town, hub) =
            patient(HubLimits { extra_connection_delay: Duration::from_millis(20), ..one_connection() })
                .await;
        let given_up = call(&connect(&hub, "ada", down, &agreeable()).await);
        let calls = heard.received("tools/call", 1).await;
        given_up.abort();
        heard.received("notifications/cancelled", 1).await;
        heard.answer(&calls[0], text_result("too late"));
        let running = call(&connect(&hub, "ada", down, &agreeable()).await);
        let calls = heard.received("tools/call", 2).await;
        assert_eq!(heard.of("initialize").len(), 1, "{down}");
        heard.answer(&calls[1], text_result("done"));
        assert_eq!(within(running).await.unwrap(), "done", "{down}");
    }
}

#[tokio::test]
async fn callers_without_input_capabilities_never_queue() {
    for (can, what) in [
        (ClientCapabilities::default(), "nothing"),
        // Roots belong to the connection, whichever call requests them.
        (ClientCapabilities::default().with_roots(), "roots"),
    ] {
        let (heard, _town, hub) = patient(one_connection()).await;
        let mute = RecordingHandler::with_roots(&[]).declaring(can);
        let client = connect(&hub, "ada", NEW, &mute).await;
        let calls = [call(&client), call(&client), call(&client)];
        for sent in heard.received("tools/call", 3).await {
            heard.answer(&sent, text_result("done"));
        }
        for call in calls {
            assert_eq!(within(call).await.unwrap(), "done", "{what}");
        }
    }
}

#[tokio::test]
async fn connection_shared_by_all_sends_input_requests_to_none() {
    for down in BOTH {
        let (heard, _town, hub) = patient_and_shared(quick(), ConnectionSharing::All).await;
        let (ada, bob) = (agreeable(), agreeable());
        let calls =
            [call(&connect(&hub, "ada", down, &ada).await), call(&connect(&hub, "bob", down, &bob).await)];
        let sent = heard.received("tools/call", 2).await;
        heard.send(&question("of either"));
        let answer = heard.answered(&json!("of either")).await;
        assert_eq!(answer["error"]["code"], -32601, "{down}: {answer}");
        sent.iter().for_each(|call| heard.answer(call, text_result("done")));
        for call in calls {
            assert_eq!(within(call).await.unwrap(), "done", "{down}");
        }
        assert!(asked(&ada).is_empty() && asked(&bob).is_empty(), "{down}");
        assert_eq!(heard.of("initialize").len(), 1, "{down}");
    }
}

/// Connects a client without capabilities, and records the log messages of the server.
async fn listening(hub: &Hub, down: Revision) -> (Client, Arc<Mutex<Vec<String>>>) {
    let logged = Arc::<Mutex<Vec<String>>>::default();
    let heard = logged.clone();
    let log = move |message: &LogMessage| heard.lock().unwrap().push(message.data.decode().unwrap());
    let builder = Client::builder().pin(down).log_level(LoggingLevel::Debug).on_log(log);
    (client(&serve_hub(hub), builder, named_principal("ada")).await, logged)
}

fn log_line(text: &str) -> Value {
    let params = json!({ "level": "warning", "data": text });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

#[tokio::test]
async fn unattributed_log_message_is_forwarded_only_with_one_active_client() {
    for down in BOTH {
        let (heard, _town, hub) = patient(quick()).await;
        let ((ada, adas), (bob, bobs)) = (listening(&hub, down).await, listening(&hub, down).await);
        let first = call(&ada);
        heard.received("tools/call", 1).await;
        heard.send(&log_line("alone"));
        until(|| *adas.lock().unwrap() == ["alone"]).await;
        let second = call(&bob);
        let calls = heard.received("tools/call", 2).await;
        heard.send(&log_line("of either"));
        heard.answer(&calls[0], text_result("first"));
        assert_eq!(within(first).await.unwrap(), "first");
        heard.send(&log_line("left"));
        until(|| *bobs.lock().unwrap() == ["left"]).await;
        heard.answer(&calls[1], text_result("second"));
        assert_eq!(within(second).await.unwrap(), "second");
        assert_eq!(*adas.lock().unwrap(), ["alone"], "{down}");
        assert_eq!(heard.of("initialize").len(), 1, "{down}");
    }
}

#[tokio::test]
async fn input_request_never_reaches_another_principal_after_any_wait() {
    for down in BOTH {
        let (heard, _town, hub) = patient(quick()).await;
        let (bobs, adas) = (agreeable(), agreeable());
        let bob = call(&connect(&hub, "bob", down, &bobs).await);
        heard.received("tools/call", 1).await;
        let bobs_connection = heard.newest();
        let ada = call(&connect(&hub, "ada", down, &adas).await);
        let calls = heard.received("tools/call", 2).await;
        // The newest connection is that of ada.
        heard.send(&question("for ada"));
        heard.answered(&json!("for ada")).await;
        assert_eq!((bobs.asked().len(), adas.asked().len()), (0, 1), "{down}");
        let own = |sent: &Value| calls.iter().position(|call| call["id"] == sent["id"]).is_some();
        assert!(calls.iter().all(own));
        bobs_connection.receive(
            json!({ "jsonrpc": "2.0", "id": calls[0]["id"], "result": text_result("b") }).to_string(),
        );
        heard.answer(&calls[1], text_result("a"));
        assert_eq!((within(bob).await.unwrap(), within(ada).await.unwrap()), ("b".into(), "a".into()));
    }
}

#[tokio::test]
async fn input_request_outside_of_calls_is_refused_or_cancelled() {
    for down in BOTH {
        let (heard, _town, hub) = patient(quick()).await;
        let all =
            RecordingHandler::new(|question: &InputRequest| panic!("nobody should be asked: {question:?}"));
        let client = connect(&hub, "ada", down, &all).await;
        let done = call(&client);
        let calls = heard.received("tools/call", 1).await;
        heard.answer(&calls[0], text_result("done"));
        assert_eq!(within(done).await.unwrap(), "done");
        until(|| hub.status_of("a").unwrap().calls == 0).await;
        let sample = json!({ "messages": [], "maxTokens": 1 });
        let page =
            json!({ "mode": "url", "elicitationId": "e", "url": "https://x.example/", "message": "m" });
        for (id, method, params, key, expected) in [
            (
                "form",
                "elicitation/create",
                question("x")["params"].clone(),
                "/result/action",
                json!("cancel"),
            ),
            ("page", "elicitation/create", page, "/result/action", json!("cancel")),
            ("model", "sampling/createMessage", sample, "/error/code", json!(-1)),
            ("ping", "ping", json!({}), "/result", json!({})),
            ("unknown", "tasks/get", json!({}), "/error/code", json!(-32601)),
            ("unheard", "x/y", json!({}), "/error/code", json!(-32601)),
        ] {
            heard.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
            let answer = heard.answered(&json!(id)).await;
            assert_eq!(answer.pointer(key), Some(&expected), "{down}: {answer}");
        }
    }
}

#[tokio::test]
async fn undeclared_input_request_fails_with_the_code_of_the_revision() {
    let form = || ClientCapabilities::default().with_form();
    let url = || ClientCapabilities::default().with_url();
    let sampling = || ClientCapabilities::default().with_sampling();
    let page = json!({ "mode": "url", "elicitationId": "e", "url": "https://x.example/", "message": "m" });
    let with_tools = json!({ "messages": [], "maxTokens": 1,
        "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] });
    for (can, method, params, code) in [
        (ClientCapabilities::default(), "elicitation/create", question("x")["params"].clone(), -32601),
        (form(), "elicitation/create", page, -32602),
        (url(), "elicitation/create", question("x")["params"].clone(), -32602),
        (form(), "sampling/createMessage", json!({ "messages": [], "maxTokens": 1 }), -32601),
        (sampling(), "sampling/createMessage", with_tools, -32602),
        (form(), "roots/list", json!({}), -32601),
    ] {
        for down in BOTH {
            let (heard, _town, hub) = patient(quick()).await;
            let nobody = RecordingHandler::new(|question: &InputRequest| {
                panic!("nobody should be asked: {question:?}")
            });
            let running = call(&connect(&hub, "ada", down, &nobody.declaring(can.clone())).await);
            let calls = heard.received("tools/call", 1).await;
            heard.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params }));
            let answer = heard.answered(&json!("q")).await;
            assert_eq!(answer["error"]["code"], code, "{down}, {method}: {answer}");
            heard.answer(&calls[0], text_result("went on"));
            assert_eq!(within(running).await.unwrap(), "went on");
        }
    }
}
