//! Questions that one revision can ask and another has no words for, and pages that a user is sent to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_client::transport::{Channel as _, MemoryChannel};
use trunkline_client::{Client, ClientCall};
use trunkline_hub::Hub;

use crate::refusing::{calls, hub, outcome};
use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, ScriptedServer, TestServers, client, eager, named_principal,
    script, serve_hub, text_result, within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

fn can_everything() -> ClientCapabilities {
    ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots()
}

async fn asked(
    hub: &Hub,
    down: Revision,
    can: ClientCapabilities,
    answer: InputResponse,
) -> (Client, RecordingHandler) {
    let answers = RecordingHandler::new(move |_| Ok(answer.clone())).declaring(can);
    let builder = Client::builder().pin(down).input(answers.clone());
    (client(&serve_hub(hub), builder, named_principal("ada")).await, answers)
}

fn several_choices() -> Value {
    let choices = json!({ "type": "array", "items": { "type": "string", "enum": ["x", "y"] } });
    json!({ "mode": "form", "message": "Which?", "requestedSchema": { "type": "object", "properties": { "a": choices } } })
}

#[tokio::test]
async fn multi_select_form_is_refused_for_clients_without_it() {
    let (_heard, _town, hub) = hub(NEW, |message| match message["params"].get("inputResponses") {
        None => ScriptReply::Result(json!({ "resultType": "input_required", "requestState": "s",
            "inputRequests": { "k": { "method": "elicitation/create", "params": several_choices() } } })),
        Some(_) => ScriptReply::Result(json!({ "resultType": "complete", "content": [], "contents": [] })),
    })
    .await;
    let chosen = InputResponse::accept(Some(json!({ "a": ["x"] }).into()));
    for down in [Revision::V2025_06_18, OLD, NEW] {
        let (client, answers) = asked(&hub, down, can_everything(), chosen.clone()).await;
        for call in calls() {
            let got = outcome(&client, call).await;
            if down >= OLD {
                assert!(got["result"].is_object(), "{down}: {got}");
                continue;
            }
            let sentence = "upstream `a`, which speaks 2026-07-28: the client cannot be asked for elicitation/create: revision \
                            2025-06-18 has no form fields with several choices: use a client that speaks 2025-11-25 or a newer \
                            revision";
            let said = got["result"]["content"][0]["text"].as_str().or(got["message"].as_str()).unwrap();
            assert_eq!(said, sentence);
            assert!(got["result"]["isError"] == true || got["code"] == -32603, "{got}");
            let gap = json!({
                "reason": "unbridgeable",
                "feature": "form fields with several choices",
                "downstream": "2025-06-18",
                "upstream": "2026-07-28",
                "requiredCapabilities": { "elicitation": { "form": {} } },
            });
            let data = got.get("data").unwrap_or(&got["result"]["_meta"]["trunkline/unbridgeable"]);
            assert_eq!(*data, gap, "{got}");
        }
        assert_eq!(answers.asked().len(), if down >= OLD { 2 } else { 0 });
    }
}

fn page() -> Value {
    json!({ "mode": "url", "elicitationId": "e", "url": "https://x.example/", "message": "Log in." })
}

/// A legacy server that wants a page to be visited before the first call.
async fn gatekeeper() -> (ScriptedServer, TestServers, Hub) {
    let times = Arc::new(AtomicUsize::new(0));
    hub(OLD, move |message| {
        if times.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return ScriptReply::Error(
                json!({ "code": -32042, "message": "visit first", "data": { "elicitations": [page()] } }),
            );
        }
        ScriptReply::Result(match message["method"].as_str() {
            Some("tools/call") => text_result("welcome"),
            _ => json!({ "contents": [{ "uri": "x:y", "text": "welcome" }] }),
        })
    })
    .await
}

#[tokio::test]
async fn url_elicitation_required_error_is_elicited_and_the_call_retried() {
    for down in BOTH {
        let (heard, _town, hub) = gatekeeper().await;
        let (client, answers) = asked(&hub, down, can_everything(), InputResponse::accept(None)).await;
        for call in calls() {
            let got = outcome(&client, call).await;
            assert!(got["result"].to_string().contains("welcome"), "{down}: {got}");
        }
        let asked = answers.asked();
        assert_eq!(asked.len(), 2);
        assert!(
            asked
                .iter()
                .all(|asked| matches!(asked, InputRequest::Url(url) if url.url == "https://x.example/"))
        );
        assert_eq!(heard.of("tools/call").len(), 2, "{down}");
    }
}

#[tokio::test]
async fn declined_url_elicitation_fails_the_call_with_a_message() {
    for down in BOTH {
        for answer in [InputResponse::decline(), InputResponse::cancel()] {
            let (heard, _town, hub) = gatekeeper().await;
            let (client, _) = asked(&hub, down, can_everything(), answer).await;
            let [call, read] = calls();
            let got = outcome(&client, call).await;
            assert_eq!(got["result"]["isError"], true, "{down}: {got}");
            let text = got["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("page was not agreed to"), "{text}");
            assert_eq!(heard.of("tools/call").len(), 1, "{down}: it is not made again");
            // The next call is allowed, and the one after it requests input again.
            outcome(&client, ClientCall::tool("a__t", json!({}))).await;
            let got = outcome(&client, read).await;
            assert_eq!(got["code"], -32603, "{down}: {got}");
        }
    }
}

#[tokio::test]
async fn url_elicitation_for_a_client_without_it_names_the_missing_capability() {
    for (down, can) in
        [(NEW, ClientCapabilities::default().with_form()), (OLD, ClientCapabilities::default())]
    {
        let (_heard, _town, hub) = gatekeeper().await;
        let (client, answers) = asked(&hub, down, can, InputResponse::accept(None)).await;
        let got = outcome(&client, ClientCall::tool("a__t", json!({}))).await;
        if down == NEW {
            let required = &got["data"]["requiredCapabilities"];
            assert_eq!(
                (&got["code"], required),
                (&json!(-32021), &json!({ "elicitation": { "url": {} } })),
                "{got}"
            );
        } else {
            assert_eq!(got["result"]["isError"], true, "{got}");
            assert!(got["result"]["content"][0]["text"].as_str().unwrap().contains("elicitation"), "{got}");
        }
        assert!(answers.asked().is_empty());
    }
}

#[tokio::test]
async fn repeated_url_elicitation_is_shown_once_and_its_completion_is_notified() {
    // It requests the same URL three times while the user has not finished there, and then continues.
    let (heard, _town, hub) = hub(NEW, |message| {
        let round: u64 =
            message["params"]["requestState"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
        if round == 3 {
            return ScriptReply::Result(
                json!({ "resultType": "complete", "content": [{ "type": "text", "text": "welcome" }] }),
            );
        }
        let params = json!({ "mode": "url", "url": "https://x.example/", "message": "Log in." });
        ScriptReply::Result(json!({ "resultType": "input_required", "requestState": (round + 1).to_string(),
            "inputRequests": { "k": { "method": "elicitation/create", "params": params } } }))
    })
    .await;
    let mut peer = by_hand(&hub, "ada").await;
    let call = json!({ "name": "a__t", "arguments": {} });
    send(&mut peer, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).await;
    let question = receive(&mut peer).await;
    assert_eq!(
        (&question["method"], &question["params"]["mode"]),
        (&json!("elicitation/create"), &json!("url"))
    );
    let page = &question["params"]["elicitationId"];
    assert!(page.is_string(), "{question}");
    send(&mut peer, &json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } }))
        .await;
    let complete = receive(&mut peer).await;
    assert_eq!(complete["method"], "notifications/elicitation/complete", "{complete}");
    assert_eq!(complete["params"]["elicitationId"], *page);
    let answer = receive(&mut peer).await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(2), &json!("welcome")),
        "{answer}"
    );
    let calls = heard.of("tools/call");
    assert_eq!(calls.len(), 4);
    for again in &calls[1..] {
        assert_eq!(again["params"]["inputResponses"]["k"], json!({ "action": "accept" }), "{again}");
    }
}

/// Connects a client of 2025-11-25 by hand, that can be shown pages.
async fn by_hand(hub: &Hub, who: &str) -> MemoryChannel {
    let (ours, mut peer) = trunkline_client::transport::memory(64);
    let (front, who) = (serve_hub(hub), named_principal(who));
    tokio::spawn(async move { front.serve_channel(ours, who).await.map(drop) });
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
    send(&mut peer, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": OLD.as_str(), "capabilities": capabilities, "clientInfo": { "name": "c", "version": "1" } } }))
    .await;
    receive(&mut peer).await;
    send(&mut peer, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    peer
}

/// Calls the tool, and accepts the URL elicitation; returns its id.
async fn agree_to_page(peer: &mut MemoryChannel) -> Value {
    let call = json!({ "name": "a__t", "arguments": {} });
    send(peer, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).await;
    let question = receive(peer).await;
    assert_eq!(question["params"]["mode"], "url", "{question}");
    send(peer, &json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } })).await;
    question["params"]["elicitationId"].clone()
}

#[tokio::test]
async fn elicitation_complete_reaches_only_the_elicited_client() {
    // Each call requests a URL of its own, and ends as soon as the user accepts.
    let (calls, called) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let called_at = called.clone();
    let (heard, opener) = script(move |peer, message| match message["method"].as_str() {
        Some("tools/call") => {
            called_at.store(peer.number, Ordering::SeqCst);
            let number = calls.fetch_add(1, Ordering::SeqCst);
            let params = json!({ "mode": "url", "elicitationId": format!("e{number}"), "url": "https://x.example/", "message": "?" });
            let id = json!({ "number": number, "call": message["id"] }).to_string();
            peer.send(
                json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params }),
            );
            ScriptReply::Nothing
        }
        None => {
            let id: Value = serde_json::from_str(message["id"].as_str().unwrap()).unwrap();
            peer.answer(&json!({ "id": id["call"] }), text_result("welcome"));
            ScriptReply::Nothing
        }
        _ => ScriptReply::AsUsual,
    });
    let town = TestServers::default();
    town.add_script("a", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    let (mut ada, mut other, mut bob) =
        (by_hand(&hub, "ada").await, by_hand(&hub, "ada").await, by_hand(&hub, "bob").await);
    let mut pages = Vec::new();
    for peer in [&mut ada, &mut other] {
        let page = agree_to_page(peer).await;
        let answer = receive(peer).await;
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(2), &json!("welcome")));
        pages.push(page);
    }
    // Both use the same connection, in which the server completes the second elicitation first.
    let done = |id: &str| {
        let complete = json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": { "elicitationId": id } });
        heard.connection(called.load(Ordering::SeqCst)).receive(complete.to_string());
    };
    done("e1");
    let complete = receive(&mut other).await;
    assert_eq!(complete["method"], "notifications/elicitation/complete");
    assert_eq!(complete["params"], json!({ "elicitationId": pages[1] }));
    done("e1");
    done("nobody's");
    done("e0");
    let complete = receive(&mut ada).await;
    assert_eq!(complete["params"], json!({ "elicitationId": pages[0] }), "told once, and of its own page");
    // A client without an elicitation gets no notification: its next message is the response to its next request.
    for peer in [&mut ada, &mut other, &mut bob] {
        send(peer, &json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" })).await;
        assert_eq!(receive(peer).await["id"], 9);
    }
}

async fn send(peer: &mut MemoryChannel, message: &Value) {
    peer.send(&message.to_string());
    within(std::future::poll_fn(|cx| peer.poll_flush(cx))).await.unwrap();
}

async fn receive(peer: &mut MemoryChannel) -> Value {
    let received = within(std::future::poll_fn(|cx| peer.poll_receive(cx))).await.unwrap().unwrap();
    serde_json::from_slice(&received).unwrap()
}
