//! Connections that end when they should not.

use std::sync::Arc;

use serde_json::json;
use trunkline_client::{Client, Error, RequestDelivery};
use trunkline_transport::ChannelOpener;

use crate::peer::{ERAS, ScriptedChannel, call, connect, soon, text_result};

#[tokio::test(start_paused = true)]
async fn server_exit_after_the_handshake_is_reported_at_once() {
    for era in ERAS {
        let client = connect(era, async |peer: ScriptedChannel| drop(peer)).await;
        for _ in 0..3 {
            let error = soon("the call", call(&client, "a")).await.unwrap_err();
            assert!(matches!(error, Error::Closed { .. }), "{error}");
            assert_eq!(error.to_string(), "the server closed the connection");
        }
        let error = soon("the list", client.tools()).await.unwrap_err();
        assert!(matches!(error, Error::Closed { .. }), "{error}");
        soon("the end", client.close()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn server_exit_during_calls_fails_them_without_retry() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            for _ in 0..10 {
                peer.call().await;
            }
        })
        .await;
        let calls = (0..10).map(|_| call(&client, "a"));
        for outcome in soon("the calls", futures_util::future::join_all(calls)).await {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Closed { delivery: RequestDelivery::MaybeSent, .. }), "{error}");
        }
        let error = call(&client, "b").await.unwrap_err();
        assert!(!error.may_have_run(), "what is asked afterwards reaches nobody");
    }
}

#[tokio::test(start_paused = true)]
async fn response_truncated_at_any_byte_fails_the_call() {
    for era in ERAS {
        let length =
            format!("{}\n", json!({ "jsonrpc": "2.0", "id": 2, "result": text_result("whole") })).len();
        for cut in 0..=length {
            let client = connect(era, async move |mut peer: ScriptedChannel| {
                let (id, _) = peer.call().await;
                let answer =
                    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "result": text_result("whole") }));
                assert_eq!(answer.len(), length, "ids have one digit here");
                peer.bytes(&answer.as_bytes()[..cut]).await;
            })
            .await;
            let outcome = soon("the call", call(&client, "a")).await;
            // Without the end of its line the answer is whole already.
            if cut >= length - 1 {
                assert_eq!(outcome.unwrap(), "whole", "{era}: cut at {cut}");
                continue;
            }
            let error = outcome.unwrap_err();
            assert!(
                matches!(error, Error::Closed { .. } | Error::Malformed(_)),
                "{era}: cut at {cut}: {error}"
            );
            assert!(error.may_have_run(), "{era}: cut at {cut}: {error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handshake_truncated_at_any_byte_is_reported_with_every_attempt() {
    for era in ERAS {
        // Long enough for every answer; a cut beyond the end leaves the server alive until the client calls.
        for cut in 0..260 {
            let opener = ChannelOpener::new("a mortal server", move || async move {
                let (channel, mut peer) = ScriptedChannel::pair(1 << 20);
                tokio::spawn(async move {
                    let Some(request) = peer.next().await else { return };
                    let capabilities = json!({ "tools": {}, "filler": "x".repeat(80) });
                    let result = match request["method"].as_str() {
                        Some("server/discover") => {
                            json!({ "resultType": "complete", "supportedVersions": [era.as_str()], "capabilities": capabilities })
                        }
                        _ => {
                            json!({ "protocolVersion": era.as_str(), "capabilities": capabilities, "serverInfo": { "name": "x", "version": "1" } })
                        }
                    };
                    let answer =
                        format!("{}\n", json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
                    peer.bytes(&answer.as_bytes()[..cut.min(answer.len())]).await;
                });
                Ok(channel)
            });
            let connected = soon("the end", Client::builder().pin(era).connect(opener)).await;
            let error = match connected {
                Ok(client) => soon("the call", call(&client, "a")).await.unwrap_err(),
                Err(error) => error,
            };
            assert!(
                matches!(error, Error::Unreachable(_) | Error::Closed { .. }),
                "{era}: cut at {cut}: {error}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn server_exit_on_probe_reopens_the_channel_for_initialize() {
    let opened = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let opener = ChannelOpener::new("a fragile server", move || {
        let first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        async move {
            let (channel, mut peer) = ScriptedChannel::pair(1 << 20);
            tokio::spawn(async move {
                if first {
                    // The server does not know the method, and cannot report that.
                    peer.request("server/discover").await;
                    return;
                }
                peer.handshake(ERAS[0]).await;
                peer.serve_calls().await;
            });
            Ok(channel)
        }
    });
    let client = soon("a connection", Client::connect(opener)).await.unwrap();
    assert_eq!(opened.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(call(&client, "a").await.unwrap(), "a");
    assert_eq!(client.server().attempts.len(), 2, "{:?}", client.server().attempts);
}
