//! Servers that send too much.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::{Client, ClientLimits, Error, RequestDelivery};

use crate::peer::{ERAS, SILENCE, ScriptedChannel, call, connect, connect_with, soon};

fn notice(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The messages that a server can send unsolicited, made from a number and the id of a running call.
const NOTICES: [fn(usize, &Value) -> Value; 6] = [
    |number, _| notice("notifications/message", json!({ "level": "info", "data": format!("{number}") })),
    |number, id| notice("notifications/progress", json!({ "progressToken": id, "progress": number })),
    |number, _| {
        notice("notifications/progress", json!({ "progressToken": number + 1_000_000, "progress": 1 }))
    },
    |_, _| notice("notifications/tools/list_changed", json!({})),
    |number, _| notice("notifications/resources/updated", json!({ "uri": format!("a:{number}") })),
    |number, _| notice(&format!("notifications/x{number}"), json!({})),
];

#[tokio::test(start_paused = true)]
async fn notification_floods_do_not_block_responses() {
    for era in ERAS {
        for make in NOTICES {
            let client = connect(era, async move |mut peer: ScriptedChannel| {
                for number in 0..5_000 {
                    peer.send(make(number, &json!(0))).await;
                }
                let (id, name) = peer.call().await;
                for number in 0..5_000 {
                    peer.send(make(number, &id)).await;
                }
                peer.answer_text(&id, &name).await;
                peer.serve_calls().await;
            })
            .await;
            assert_eq!(soon("the call", call(&client, "a")).await.unwrap(), "a");
            assert_eq!(soon("the call", call(&client, "b")).await.unwrap(), "b");
        }
    }
}

#[test]
fn constant_notifications_do_not_defer_the_deadline() {
    // With a thread for each side and a real clock, so that there is always a message to read.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for make in NOTICES {
            let client = connect(ERAS[1], async move |mut peer: ScriptedChannel| {
                let (id, _) = peer.call().await;
                let mut line = String::new();
                for number in 0..100 {
                    line.push_str(&format!("{}\n", make(number / 100, &id)));
                }
                while peer.bytes(line.as_bytes()).await {}
            })
            .await;
            let call = client.call("a", json!({})).timeout(Duration::from_millis(200));
            let outcome = tokio::time::timeout(Duration::from_secs(30), call.into_future()).await;
            let error = outcome.expect("an end in time").unwrap_err();
            assert!(matches!(error, Error::TimedOut { .. }), "{error}");
            client.close().await;
        }
    });
}

#[tokio::test(start_paused = true)]
async fn endless_line_is_bounded_and_calls_time_out() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let calls = [peer.call().await, peer.call().await];
            peer.bytes(b"{\"jsonrpc\":\"2.0\",\"id\":").await;
            for _ in 0..256 {
                peer.bytes(&[b'1'; 64 * 1024]).await;
            }
            // The response has no readable id. The line ends, and later calls work again.
            peer.bytes(b"\n").await;
            peer.answer_text(&calls[1].0, "second").await;
            peer.serve_calls().await;
        })
        .await;
        let (first, second) = tokio::join!(call(&client, "first"), call(&client, "second"));
        let error = first.unwrap_err();
        assert!(matches!(error, Error::TimedOut { after } if after == SILENCE), "{error}");
        assert_eq!(second.unwrap(), "second");
        assert_eq!(call(&client, "third").await.unwrap(), "third");
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_response_fails_the_only_call_it_can_belong_to() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (id, _) = peer.call().await;
            peer.answer_text(&id, &"x".repeat(2 << 20)).await;
            peer.serve_calls().await;
        })
        .await;
        let error = soon("the call", call(&client, "a")).await.unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error}");
        assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
        assert_eq!(call(&client, "b").await.unwrap(), "b");
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_response_fails_the_call_that_it_names_at_its_end() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let calls = [peer.call().await, peer.call().await];
            let (long, short) = calls.into_iter().partition::<Vec<_>, _>(|(_, name)| name == "long");
            let text =
                json!({ "content": [{ "type": "text", "text": "x".repeat(2 << 20), "id": short[0].0 }] });
            let line = format!(r#"{{"result":{text},"jsonrpc":"2.0","id":{}}}"#, long[0].0);
            peer.bytes(format!("{line}\n").as_bytes()).await;
            peer.answer_text(&short[0].0, "short").await;
            peer.serve_calls().await;
        })
        .await;
        let (long, short) = tokio::join!(call(&client, "long"), call(&client, "short"));
        assert!(matches!(long, Err(Error::TooLong { .. })), "{long:?}");
        assert_eq!(short.unwrap(), "short");
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_notification_fails_no_call() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (id, name) = peer.call().await;
            let params = json!({ "level": "info", "data": "x".repeat(2 << 20), "id": id });
            peer.send(notice("notifications/message", params)).await;
            peer.answer_text(&id, &name).await;
            peer.serve_calls().await;
        })
        .await;
        assert_eq!(soon("the call", call(&client, "a")).await.unwrap(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_lines_are_skipped_up_to_the_limit() {
    let nonsense = [
        "7\n",
        "\"x\"\n",
        "nul\n",
        "{}\n",
        "{\"jsonrpc\":\"1.0\",\"method\":\"x\"}\n",
        "[]\n",
        "\u{1}\n",
        "{\"a\":\n",
    ];
    let limits = ClientLimits { malformed_messages: 100, ..ClientLimits::default() };
    for era in ERAS {
        for line in nonsense {
            let builder = Client::builder().limits(limits.clone());
            let script = async move |mut peer: ScriptedChannel| {
                let (id, name) = peer.call().await;
                for _ in 0..90 {
                    peer.bytes(line.as_bytes()).await;
                }
                peer.answer_text(&id, &name).await;
                peer.call().await;
                while peer.bytes(line.as_bytes()).await {}
            };
            let client = connect_with(builder, era, script).await.unwrap();
            assert_eq!(soon("the call", call(&client, "a")).await.unwrap(), "a", "{line}");
            let error = soon("the call", call(&client, "b")).await.unwrap_err();
            assert!(matches!(error, Error::Closed { .. }), "{line}: {error}");
            assert!(error.to_string().contains("more than 100 malformed messages"), "{line}: {error}");
            // The connection is closed, and the error is immediate.
            let error = soon("the call", call(&client, "c")).await.unwrap_err();
            assert!(
                matches!(error, Error::Closed { delivery: RequestDelivery::NotSent, .. }),
                "{line}: {error}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn too_deep_messages_and_huge_batches_count_as_malformed() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (id, name) = peer.call().await;
            let deep = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{}{}}}\n",
                "{\"a\":".repeat(10_000),
                "1".to_owned() + &"}".repeat(10_000)
            );
            peer.bytes(deep.as_bytes()).await;
            let one = notice("notifications/x", json!({})).to_string();
            peer.bytes(format!("[{}]\n", vec![one; 1_000].join(",")).as_bytes()).await;
            peer.answer_text(&id, &name).await;
            peer.serve_calls().await;
        })
        .await;
        assert_eq!(soon("the call", call(&client, "a")).await.unwrap(), "a");
        assert_eq!(call(&client, "b").await.unwrap(), "b");
    }
}
