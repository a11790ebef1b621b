//! Answers that are late, repeated, misdirected or malformed.

use serde_json::json;
use trunkline_client::Error;

use crate::peer::{ERAS, SILENCE, ScriptedChannel, call, connect, soon, text_result};

#[tokio::test(start_paused = true)]
async fn late_response_reaches_no_other_call() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (late, _) = peer.call().await;
            // The client cancels the call, and calls again.
            assert_eq!(peer.request("notifications/cancelled").await, json!(null));
            let (next, _) = peer.call().await;
            peer.answer_text(&late, "late").await;
            peer.answer_text(&next, "next").await;
            peer.serve_calls().await;
        })
        .await;
        let error = soon("the first call", call(&client, "slow")).await.unwrap_err();
        assert!(matches!(error, Error::TimedOut { after } if after == SILENCE), "{error}");
        assert_eq!(soon("the next call", call(&client, "next")).await.unwrap(), "next");
        assert_eq!(call(&client, "third").await.unwrap(), "third");
    }
}

#[tokio::test(start_paused = true)]
async fn duplicate_response_counts_once() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (first, _) = peer.call().await;
            peer.answer_text(&first, "one").await;
            peer.answer_text(&first, "two").await;
            let (second, _) = peer.call().await;
            peer.answer_text(&first, "three").await;
            peer.answer_text(&second, "four").await;
            peer.serve_calls().await;
        })
        .await;
        assert_eq!(call(&client, "a").await.unwrap(), "one");
        assert_eq!(call(&client, "b").await.unwrap(), "four");
        assert_eq!(call(&client, "c").await.unwrap(), "c");
    }
}

#[tokio::test(start_paused = true)]
async fn response_with_unknown_id_is_dropped() {
    // Ids that were never used, and ones that only look like one that was.
    let ids = [
        json!(999_999),
        json!("1"),
        json!(1.5),
        json!(-1),
        json!({ "a": 1 }),
        json!([1]),
        json!(true),
        json!(""),
    ];
    for era in ERAS {
        let ids = ids.clone();
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (id, _) = peer.call().await;
            for wrong in ids {
                peer.answer_text(&wrong, "wrong").await;
                peer.send(
                    json!({ "jsonrpc": "2.0", "id": wrong, "error": { "code": -1, "message": "wrong" } }),
                )
                .await;
            }
            // The same number, spelled in another way.
            peer.bytes(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}.0,\"result\":{{}}}}\n").as_bytes()).await;
            peer.answer_text(&id, "right").await;
            peer.serve_calls().await;
        })
        .await;
        assert_eq!(soon("the call", call(&client, "a")).await.unwrap(), "right");
        assert_eq!(call(&client, "b").await.unwrap(), "b");
    }
}

#[tokio::test(start_paused = true)]
async fn misdirected_response_does_not_complete_another_call() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (first, name) = peer.call().await;
            let (second, _) = peer.call().await;
            // Both answers are for the first, and none for the second.
            peer.answer_text(&first, &name).await;
            peer.answer_text(&first, "misdirected").await;
            assert_ne!(first, second);
            peer.serve_calls().await;
        })
        .await;
        let (first, second) = tokio::join!(call(&client, "first"), call(&client, "second"));
        assert_eq!(first.unwrap(), "first");
        let error = second.unwrap_err();
        assert!(matches!(error, Error::TimedOut { after } if after == SILENCE), "{error}");
        assert_eq!(call(&client, "third").await.unwrap(), "third");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_response_fails_its_own_call_at_once() {
    // The text after the id, and the error message.
    let table = [
        (r#""result":{},"error":{"code":1,"message":"x"}"#, "response"),
        (r#""nothing":1"#, "response"),
        (r#""result":{"content":7}"#, "content"),
        (r#""result":[]"#, ""),
        (r#""result":7"#, ""),
        (r#""error":7"#, ""),
        (r#""error":{"code":"x"}"#, "no reason"),
        (r#""result":{"resultType":7,"content":[]}"#, ""),
        (r#""result":{},"result":{}"#, ""),
    ];
    for era in ERAS {
        for (body, expected) in table {
            let client = connect(era, async move |mut peer: ScriptedChannel| {
                let (id, _) = peer.call().await;
                peer.bytes(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}\n").as_bytes()).await;
                peer.serve_calls().await;
            })
            .await;
            let began = tokio::time::Instant::now();
            let outcome = soon(body, call(&client, "a")).await;
            let error = match outcome {
                // The result of a legacy server has no type.
                Ok(_) if body.contains("resultType") => continue,
                Ok(text) => panic!("{era}: {body} was taken for a result: {text}"),
                Err(error) => error,
            };
            assert!(
                matches!(error, Error::Malformed(_) | Error::ErrorResponse(_))
                    && error.to_string().contains(expected),
                "{era}: {body}: {error}"
            );
            assert_eq!(began.elapsed().as_secs(), 0, "{era}: {body}: {error}");
            assert_eq!(call(&client, "b").await.unwrap(), "b");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_handshake_is_reported_as_such() {
    // The response to `initialize`, and the error message.
    let table = [
        (json!({ "result": {} }), "protocolVersion"),
        (json!({ "result": { "protocolVersion": "1999-01-01", "capabilities": {} } }), "1999-01-01"),
        (json!({ "result": { "protocolVersion": 7 } }), "protocolVersion"),
        (json!({ "result": 7 }), ""),
        (json!({ "error": { "code": -32000, "message": "go away" } }), "go away"),
        (json!({ "error": {} }), "no reason"),
    ];
    for (answer, expected) in table {
        let (channel, mut peer) = ScriptedChannel::pair(1 << 20);
        let channel = std::sync::Mutex::new(Some(channel));
        let opener = trunkline_transport::ChannelOpener::new("a hostile server", move || {
            let channel = channel.lock().unwrap().take();
            async { channel.ok_or_else(|| std::io::Error::other("it is opened once")) }
        });
        let script = async {
            let id = peer.request("server/discover").await;
            peer.send(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "what?" } }))
                .await;
            let id = peer.request("initialize").await;
            let mut message = answer.clone();
            message["jsonrpc"] = json!("2.0");
            message["id"] = id;
            peer.send(message).await;
            peer.next().await
        };
        let (client, _) =
            soon("an end", async { tokio::join!(trunkline_client::Client::connect(opener), script) }).await;
        let error = client.unwrap_err();
        let Error::Unreachable(unreachable) = &error else { panic!("{error}") };
        assert!(error.to_string().contains(expected), "{answer}: {error}");
        assert_eq!(unreachable.attempts.len(), 2, "{answer}: {unreachable:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn error_without_id_fails_the_only_call_or_is_dropped() {
    let client = connect(ERAS[1], async |mut peer: ScriptedChannel| {
        let (_, _) = peer.call().await;
        peer.send(
            json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "unreadable" } }),
        )
        .await;
        let calls = [peer.call().await, peer.call().await];
        peer.send(
            json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "unreadable" } }),
        )
        .await;
        for (id, name) in calls {
            peer.answer(&id, text_result(&name)).await;
        }
    })
    .await;
    let error = call(&client, "only").await.unwrap_err();
    assert!(error.to_string().contains("unreadable"), "{error}");
    let (first, second) = tokio::join!(call(&client, "first"), call(&client, "second"));
    assert_eq!((first.unwrap(), second.unwrap()), ("first".to_owned(), "second".to_owned()));
}
