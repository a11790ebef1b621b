//! Servers that do what no server should, as scripts: each ends with a clear error, and the other calls are unharmed.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::InputResponse;
use trunkline_client::transport::ChannelOpener;
use trunkline_client::{ChangeEvent, ChangeFilter, Client, ClientLimits, Error, RequestDelivery};

use crate::support::{Answers, ScriptAction, ScriptedPeer, or_handshake, settle, within};

/// A server that responds only to the handshake; the test sends everything else.
pub(crate) fn mute() -> (ScriptedPeer, ChannelOpener) {
    ScriptedPeer::new(|_, message| or_handshake(message, |_| ScriptAction::Wait))
}

pub(crate) async fn connect(opener: ChannelOpener, revision: Revision) -> Client {
    within(Client::builder().pin(revision).connect(opener)).await.unwrap()
}

pub(crate) fn done(id: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": id.to_string() }] } }).to_string()
}

#[tokio::test(start_paused = true)]
async fn unmatched_responses_are_dropped_and_each_call_gets_its_own() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let calls = (0..3).map(|_| client.call("t", json!({})).into_future());
    let (results, ()) = tokio::join!(futures_util::future::join_all(calls), async {
        settle().await;
        let mock = script.newest();
        let ids: Vec<Value> = script.sent()[0]
            .iter()
            .filter(|sent| sent["method"] == "tools/call")
            .map(|sent| sent["id"].clone())
            .collect();
        // For an unknown id, for an id as a string, twice, and in another order than that of the requests.
        for id in [&json!(999), &json!(ids[0].to_string()), &json!(null)] {
            mock.receive(done(id));
        }
        for id in ids.iter().rev() {
            mock.receive(done(id));
            mock.receive(done(id));
        }
    });
    let said: Vec<String> = results.into_iter().map(|result| result.unwrap().text()).collect();
    assert_eq!(said, ["2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn thousand_calls_answered_in_reverse_order_get_their_own_responses() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let calls = (0..1000).map(|_| client.call("t", json!({})).into_future());
    let (results, ids) = tokio::join!(futures_util::future::join_all(calls), async {
        let ids: Vec<Value> = loop {
            settle().await;
            let sent = script.sent().remove(0);
            let calls = sent.iter().filter(|sent| sent["method"] == "tools/call");
            let ids: Vec<_> = calls.map(|sent| sent["id"].clone()).collect();
            if ids.len() == 1000 {
                break ids;
            }
        };
        ids.iter().rev().for_each(|id| script.newest().receive(done(id)));
        ids
    });
    for (id, result) in ids.iter().zip(results) {
        assert_eq!(result.unwrap().text(), id.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn server_request_with_a_calls_id_is_not_its_response() {
    let (script, opener) = mute();
    let answers = Answers::new(|_| Ok(InputResponse::Roots(Vec::new())));
    let builder = Client::builder().input(answers).pin(Revision::V2025_11_25);
    let client = within(builder.connect(opener)).await.unwrap();
    let (result, id) = tokio::join!(client.call("t", json!({})).into_future(), async {
        let id = script.wait_for("tools/call").await["id"].clone();
        let question = json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" });
        script.newest().receive(question.to_string());
        let answer = script.newest().wait_for(|sent| sent.contains("\"result\"")).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["id"], &answer["result"]), (&id, &json!({ "roots": [] })));
        script.newest().receive(done(&id));
        id
    });
    assert_eq!(result.unwrap().text(), id.to_string());
}

#[tokio::test(start_paused = true)]
async fn send_failure_fails_all_calls_with_the_reason() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    script.newest().fail_next_send(std::io::Error::other("the cable is cut"));
    let calls = (0..3).map(|_| client.call("t", json!({})).into_future());
    for result in futures_util::future::join_all(calls).await {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Closed { .. }), "{error:?}");
        assert!(error.to_string().contains("the cable is cut"), "{error}");
    }
    assert!(client.is_closed() && client.closed().await.contains("the cable is cut"));
    let late = client.call("t", json!({})).await.unwrap_err();
    assert!(!late.may_have_run(), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn late_response_after_timeout_is_dropped() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let error = client.call("t", json!({})).timeout(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { after } if after == Duration::from_secs(1)), "{error}");
    settle().await;
    let sent = script.sent().remove(0);
    let cancelled = sent.last().unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    let call = sent.iter().find(|sent| sent["method"] == "tools/call").unwrap();
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    script.newest().receive(done(&call["id"]));
    let (next, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        settle().await;
        let id = script.sent()[0].last().unwrap()["id"].clone();
        script.newest().receive(done(&id));
    });
    assert_eq!(next.unwrap().text(), "3");
}

#[tokio::test(start_paused = true)]
async fn increasing_progress_extends_the_timeout_up_to_the_total_timeout() {
    for (grows, expected) in [(true, 600), (false, 60)] {
        let (script, opener) = mute();
        let client = connect(opener, Revision::V2025_11_25).await;
        let began = tokio::time::Instant::now();
        let call = client.call("t", json!({})).into_future();
        let progress = async {
            let token = script.wait_for("tools/call").await["params"]["_meta"]["progressToken"].clone();
            for step in 1.. {
                let step = if grows { step } else { 1 };
                let params = json!({ "progressToken": token, "progress": step });
                let message =
                    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
                script.newest().receive(message.to_string());
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
        };
        tokio::select! {
            result = call => assert!(matches!(result, Err(Error::TimedOut { .. }))),
            () = progress => unreachable!(),
        }
        assert_eq!(began.elapsed().as_secs(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn closed_channel_fails_all_calls_and_later_calls_are_not_sent() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (script, opener) = mute();
        let client = connect(opener, revision).await;
        let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
            script.wait_for("tools/call").await;
            script.newest().end();
        });
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Closed { delivery: RequestDelivery::MaybeSent, .. }), "{error:?}");
        let error = client.call("t", json!({})).await.unwrap_err();
        assert!(matches!(error, Error::Closed { delivery: RequestDelivery::NotSent, .. }), "{error:?}");
        assert_eq!(script.methods().len(), 1, "nothing is started again without being asked");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_messages_are_skipped_up_to_a_limit() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let noise = ["hello", "{", "[]", "7", r#"{"jsonrpc":"1.0","id":3}"#, "{\"jsonrpc\":\"2.0\"}", "\u{0}"];
    let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        let id = script.wait_for("tools/call").await["id"].clone();
        noise.iter().for_each(|noise| script.newest().receive(*noise));
        script.newest().receive(done(&id));
    });
    assert_eq!(result.unwrap().text(), "2");
    let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        settle().await;
        (0..1001).for_each(|_| script.newest().receive("noise"));
    });
    let error = result.unwrap_err();
    assert!(matches!(&error, Error::Closed { cause, .. } if cause.contains("malformed messages")), "{error}");
}

#[tokio::test(start_paused = true)]
async fn ping_is_answered_and_a_ping_flood_is_bounded() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    script.newest().receive(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    let answered = script.newest().wait_for(|sent| sent.contains("\"id\":\"p\"")).await.unwrap();
    assert_eq!(answered, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn unknown_server_request_is_refused() {
    let (script, opener) = mute();
    let _client = connect(opener, Revision::V2025_11_25).await;
    for (method, code) in [
        ("x/y", -32601),
        ("tasks/get", -32601),
        ("roots/list", -32601),
        ("sampling/createMessage", -32601),
        ("elicitation/create", -32602),
    ] {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": {} });
        script.newest().receive(request.to_string());
        let wanted = format!("\"id\":\"{method}\"");
        let answer = script.newest().wait_for(|sent| sent.contains(&wanted)).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["error"]["code"], code, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn session_input_request_flood_is_refused_beyond_the_limit() {
    let (script, opener) = mute();
    // A handler that never responds.
    struct NeverAnswers;
    impl trunkline_client::InputHandler for NeverAnswers {
        fn capabilities(&self) -> trunkline_client::protocol::model::ClientCapabilities {
            trunkline_client::protocol::model::ClientCapabilities::default().with_roots()
        }
        fn answer(
            &self,
            _: trunkline_client::InputOrigin,
            _: trunkline_client::protocol::model::InputRequest,
        ) -> trunkline_client::BoxFuture<'_, Result<InputResponse, trunkline_client::protocol::Refusal>>
        {
            Box::pin(std::future::pending())
        }
    }
    let client = within(Client::builder().input(NeverAnswers).pin(Revision::V2025_11_25).connect(opener))
        .await
        .unwrap();
    let flood = |first: u64| {
        for id in first..first + 500 {
            let request = json!({ "jsonrpc": "2.0", "id": format!("q{id}"), "method": "roots/list" });
            script.newest().receive(request.to_string());
        }
    };
    let refused = || script.sent()[0].iter().filter(|sent| sent.get("error").is_some()).count();
    flood(0);
    settle().await;
    assert!(refused() >= 500 - 64, "{}", refused());
    let call = tokio::spawn(client.call("t", json!({})).into_future());
    script.wait_for("tools/call").await;
    let before = refused();
    flood(500);
    settle().await;
    assert!(refused() - before >= 500 - 64, "{}", refused() - before);
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn cancelled_input_request_is_not_answered() {
    let (script, opener) = mute();
    let answers = Answers::new(|_| panic!("it was taken back"))
        .declaring(trunkline_client::protocol::model::ClientCapabilities::default().with_form());
    let client = within(Client::builder().input(answers.clone()).pin(Revision::V2025_11_25).connect(opener))
        .await
        .unwrap();
    let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        let id = script.wait_for("tools/call").await["id"].clone();
        let mock = script.newest();
        let params = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
        mock.receive(
            json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params })
                .to_string(),
        );
        mock.receive(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "q" } })
                .to_string(),
        );
        settle().await;
        mock.receive(done(&id));
    });
    result.unwrap();
    assert!(!script.methods()[0].contains(&"(a response)".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn modern_server_request_is_refused_within_and_outside_of_calls() {
    let (script, opener) = mute();
    let answers = Answers::new(|_| panic!("nothing is asked"));
    let client =
        within(Client::builder().pin(Revision::NEWEST).input(answers).connect(opener)).await.unwrap();
    let ask = |id: &str| {
        let params = json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params });
        script.newest().receive(request.to_string());
    };
    let refusals = || {
        let sent = script.sent().remove(0).into_iter().filter(|sent| sent.get("error").is_some());
        sent.map(|sent| (sent["id"].clone(), sent["error"]["code"].clone())).collect::<Vec<_>>()
    };
    ask("outside");
    settle().await;
    assert_eq!(refusals(), [(json!("outside"), json!(-32601))]);
    let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        settle().await;
        ask("within");
        settle().await;
        let sent = script.sent().remove(0);
        let call = sent.iter().find(|sent| sent["method"] == "tools/call").unwrap();
        script.newest().receive(done(&call["id"]));
    });
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(refusals().last(), Some(&(json!("within"), json!(-32601))));
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_in_flight_limit_wait() {
    let (script, opener) = mute();
    let limits = ClientLimits { in_flight: 2, ..ClientLimits::default() };
    let client =
        within(Client::builder().limits(limits).pin(Revision::V2025_11_25).connect(opener)).await.unwrap();
    let calls = futures_util::future::join_all((0..5).map(|_| client.call("t", json!({})).into_future()));
    let answer = async {
        for answered in 0..5 {
            settle().await;
            let ids: Vec<Value> = script.sent()[0]
                .iter()
                .filter(|sent| sent["method"] == "tools/call")
                .map(|sent| sent["id"].clone())
                .collect();
            assert!(ids.len() <= answered + 2, "{ids:?}");
            script.newest().receive(done(&ids[answered]));
        }
    };
    let (results, ()) = tokio::join!(calls, answer);
    assert!(results.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn call_dropped_before_sending_is_never_sent() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    {
        let mut call = client.call("t", json!({})).into_future();
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_pending()));
        assert!(polled.await);
    }
    settle().await;
    assert!(!script.methods()[0].contains(&"tools/call".to_owned()));
    assert!(!script.methods()[0].contains(&"notifications/cancelled".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn dropped_client_closes_its_connection() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (script, opener) = mute();
        let client = connect(opener.clone(), revision).await;
        let clone = client.clone();
        drop(client);
        settle().await;
        assert!(!script.newest().is_closed());
        drop(clone);
        settle().await;
        assert!(script.newest().is_closed());
        let client = connect(opener, revision).await;
        within(client.close()).await;
        assert!(script.newest().is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn ended_change_stream_is_reopened_and_reports_missed_changes() {
    let (script, opener) = ScriptedPeer::new(|_, message| {
        or_handshake(message, |message| {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
            let filter = &message["params"]["notifications"];
            ScriptAction::Say(
                json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": { "_meta": meta, "notifications": filter } })
                .to_string(),
            )
        })
    });
    let client = connect(opener, Revision::V2026_07_28).await;
    let mut changes =
        within(client.subscribe(ChangeFilter { tools: true, ..ChangeFilter::default() })).await.unwrap();
    for round in 1..=3 {
        let listen = script.sent()[0].last().unwrap().clone();
        let mock = script.newest();
        let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": { "_meta": { "io.modelcontextprotocol/subscriptionId": listen["id"] } } });
        // Two notifications before the first is read, and one for a stream of another request.
        mock.receive(change.to_string());
        mock.receive(change.to_string());
        mock.receive(change.to_string().replace(&format!(":{}", listen["id"]), ":\"other\""));
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools));
        match round {
            1 => mock.receive(json!({ "jsonrpc": "2.0", "id": listen["id"], "result": { "resultType": "complete" } }).to_string()),
            _ => mock.receive(
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": listen["id"] } })
                    .to_string(),
            ),
        }
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Missed));
    }
    assert_eq!(script.methods()[0].iter().filter(|method| *method == "subscriptions/listen").count(), 4);
    script.newest().end();
    assert_eq!(within(changes.next()).await, None);
}
