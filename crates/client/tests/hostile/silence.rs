//! Servers that do not answer, do not read, or do not stop.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientLimits, Error};
use trunkline_transport::ChannelOpener;

use crate::peer::{ERAS, SILENCE, ScriptedChannel, call, connect, connect_with, soon};

#[tokio::test(start_paused = true)]
async fn ignored_cancellation_does_not_affect_other_calls() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (ignored, _) = peer.call().await;
            let cancelled = loop {
                let message = peer.next().await.expect("a cancellation");
                if message["method"] == "notifications/cancelled" {
                    break message["params"]["requestId"].clone();
                }
            };
            assert_eq!(cancelled, ignored);
            // The server sends progress, log messages and an input request all the same, and in the end the response.
            for step in 0..100 {
                peer.send(progress(&ignored, step)).await;
            }
            peer.send(json!({ "jsonrpc": "2.0", "id": "q", "method": "ping" })).await;
            peer.answer_text(&ignored, "ignored").await;
            peer.serve_calls().await;
        })
        .await;
        let dropped = tokio::time::timeout(Duration::from_secs(1), call(&client, "long")).await;
        assert!(dropped.is_err(), "the call was dropped while it ran");
        for name in ["a", "b"] {
            assert_eq!(soon("a call after it", call(&client, name)).await.unwrap(), name);
        }
    }
}

fn progress(token: &Value, step: usize) -> Value {
    let params = json!({ "progressToken": token, "progress": step });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

#[tokio::test(start_paused = true)]
async fn silent_call_times_out_and_is_cancelled_while_others_complete() {
    for era in ERAS {
        let (tell, cancelled) = tokio::sync::oneshot::channel();
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let mut tell = Some(tell);
            let mut silent = None;
            while let Some(message) = peer.next().await {
                match message["method"].as_str() {
                    Some("tools/call") if message["params"]["name"] == "silent" => {
                        silent = Some(message["id"].clone());
                    }
                    Some("tools/call") => peer.answer_text(&message["id"], "well").await,
                    Some("notifications/cancelled") => {
                        assert_eq!(Some(&message["params"]["requestId"]), silent.as_ref());
                        tell.take().unwrap().send(()).unwrap();
                    }
                    _ => {}
                }
            }
        })
        .await;
        let began = Instant::now();
        let silent = client.call("silent", json!({})).timeout(Duration::from_secs(7));
        let (silent, other) = tokio::join!(silent.into_future(), call(&client, "other"));
        let error = silent.unwrap_err();
        assert!(matches!(error, Error::TimedOut { after } if after == Duration::from_secs(7)), "{error}");
        assert_eq!(error.to_string(), "no answer within 7s");
        assert!(error.may_have_run());
        assert_eq!(began.elapsed().as_secs(), 7);
        assert_eq!(other.unwrap(), "well");
        soon("the cancellation", cancelled).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn endless_progress_ends_at_the_total_timeout() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (id, _) = peer.call().await;
            for step in 0.. {
                peer.send(progress(&id, step)).await;
                tokio::time::sleep(SILENCE / 2).await;
                if !peer.bytes(b"").await {
                    return;
                }
            }
        })
        .await;
        let began = Instant::now();
        let call = client.call("busy", json!({})).progress(|_| {});
        let error = soon("the call", call.into_future()).await.unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert_eq!(began.elapsed(), ClientLimits::default().max_total_timeout, "{era}");
    }
}

#[tokio::test(start_paused = true)]
async fn constant_progress_does_not_extend_the_timeout() {
    for era in ERAS {
        let client = connect(era, async |mut peer: ScriptedChannel| {
            let (id, _) = peer.call().await;
            for step in [1, 1, 0, 1].into_iter().cycle() {
                peer.send(progress(&id, step)).await;
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        })
        .await;
        let began = Instant::now();
        let error = soon("the call", client.call("busy", json!({})).progress(|_| {}).into_future())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert!(began.elapsed() <= SILENCE + Duration::from_secs(1), "{era}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_reads_nothing_only_makes_calls_time_out() {
    for era in ERAS {
        let limits = ClientLimits { queued_bytes: 64 * 1024, in_flight: 8, ..ClientLimits::default() };
        let client = connect_with(Client::builder().limits(limits), era, async |peer: ScriptedChannel| {
            // It holds its end, and never looks at it again.
            let _peer = peer;
            std::future::pending::<()>().await;
        })
        .await
        .unwrap();
        let began = Instant::now();
        let large = "x".repeat(100_000);
        let calls = (0..100).map(|_| client.call("a", json!({ "large": large })).into_future());
        for outcome in soon("the calls", futures_util::future::join_all(calls)).await {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        }
        assert_eq!(began.elapsed(), SILENCE, "{era}: all of them at the same time");
        let began = Instant::now();
        soon("the end", client.close()).await;
        assert!(began.elapsed() <= ClientLimits::default().close_timeout, "{era}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_unreachable_after_every_attempt() {
    let opener = ChannelOpener::new("a silent server", || async {
        let (channel, peer) = ScriptedChannel::pair(1 << 20);
        tokio::spawn(async move {
            let _peer = peer;
            std::future::pending::<()>().await;
        });
        Ok(channel)
    });
    let limits = ClientLimits::default();
    let began = Instant::now();
    let error = soon("the end", Client::connect(opener)).await.unwrap_err();
    let Error::Unreachable(unreachable) = &error else { panic!("{error}") };
    let attempts: Vec<_> =
        unreachable.attempts.iter().map(|attempt| (&*attempt.action, &*attempt.outcome)).collect();
    assert_eq!(
        attempts,
        [
            ("server/discover at 2026-07-28", "no answer in time"),
            ("initialize at 2025-11-25", "no answer within 30s"),
            // It may have fallen silent at the probe, so it is opened once more and not probed.
            ("initialize at 2025-11-25", "no answer within 10s"),
        ]
    );
    assert_eq!(began.elapsed(), limits.initialize_delay + limits.handshake_timeout + limits.probe_timeout);
    assert_eq!(error.to_string(), "cannot connect to a silent server: no answer within 10s");
}

#[tokio::test(start_paused = true)]
async fn channel_opener_that_never_completes_times_out() {
    let opener = ChannelOpener::new("a void", || async {
        std::future::pending::<()>().await;
        Ok(ScriptedChannel::pair(1).0)
    });
    let error = soon("the end", Client::connect(opener)).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot connect to a void: no connection within 30s");
}

#[tokio::test(start_paused = true)]
async fn responses_after_cancellation_do_not_affect_later_calls() {
    // It answers every call just after the client gave up on it.
    let client = connect(Revision::V2026_07_28, async |mut peer: ScriptedChannel| {
        let mut late = Vec::new();
        while let Some(message) = peer.next().await {
            match message["method"].as_str() {
                Some("tools/call") if message["params"]["name"] == "sane" => {
                    peer.answer_text(&message["id"], "sane").await;
                }
                Some("tools/call") => late.push(message["id"].clone()),
                Some("notifications/cancelled") => {
                    for id in late.drain(..) {
                        peer.answer_text(&id, "late").await;
                    }
                }
                _ => {}
            }
        }
    })
    .await;
    for _ in 0..100 {
        assert!(matches!(soon("a call", call(&client, "late")).await, Err(Error::TimedOut { .. })));
    }
    assert_eq!(call(&client, "sane").await.unwrap(), "sane");
}
