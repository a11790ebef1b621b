//! How the era of a server is found out, against servers that are only scripts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::{Era, Revision};
use trunkline_client::{Client, ClientBuilder, ClientLimits, Error};

use crate::support::{ScriptAction, ScriptedPeer, described, error, initialized, within};

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";
const INITIALIZED: &str = "notifications/initialized";

/// Connects to a server with functions for its responses to `server/discover` and `initialize`.
async fn probe(
    discover: impl Fn(usize) -> ScriptAction + Send + Sync + 'static,
    initialize: impl Fn(&Value) -> ScriptAction + Send + Sync + 'static,
) -> (Result<Client, Error>, Vec<Vec<String>>, ScriptedPeer) {
    probe_by(Client::builder(), discover, initialize).await
}

async fn probe_by(
    builder: ClientBuilder,
    discover: impl Fn(usize) -> ScriptAction + Send + Sync + 'static,
    initialize: impl Fn(&Value) -> ScriptAction + Send + Sync + 'static,
) -> (Result<Client, Error>, Vec<Vec<String>>, ScriptedPeer) {
    let asked = AtomicUsize::new(0);
    let (script, opener) = ScriptedPeer::new(move |_, message| match message["method"].as_str() {
        Some(DISCOVER) => discover(asked.fetch_add(1, Ordering::SeqCst)),
        Some(INITIALIZE) => initialize(message),
        _ => ScriptAction::Wait,
    });
    let client = within(builder.connect(opener)).await;
    let methods = script.methods();
    (client, methods, script)
}

fn unsupported(supported: Value) -> ScriptAction {
    ScriptAction::Error(json!({ "code": -32022, "message": "no", "data": { "supported": supported } }))
}

#[tokio::test(start_paused = true)]
async fn server_that_answers_discover_is_modern_without_handshake() {
    let (client, methods, script) = probe(|_| described(), |_| panic!()).await;
    assert_eq!(client.unwrap().server().revision, Revision::V2026_07_28);
    assert_eq!(methods, [[DISCOVER]]);
    let meta = &script.sent()[0][0]["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "trunkline");
}

fn lists_both() -> ScriptAction {
    let ScriptAction::Result(mut described) = described() else { panic!() };
    described["supportedVersions"] = json!(["2026-07-28", "2025-11-25"]);
    ScriptAction::Result(described)
}

#[tokio::test(start_paused = true)]
async fn preferred_era_is_used_over_a_channel_if_supported_else_the_other() {
    type Say = fn() -> ScriptAction;
    let (yes, no, unknown) = (Some(true), Some(false), None);
    let old: Say = || initialized("2025-11-25");
    let unknown_method: Say = || error(-32601);
    let kinds: [(&str, Say, Say); 6] = [
        ("both", described, old),
        ("both, and says so", lists_both, old),
        ("legacy", unknown_method, old),
        ("modern", described, unknown_method),
        ("modern that refuses the version", described, || unsupported(json!(["2026-07-28"]))),
        ("modern that goes away", described, || ScriptAction::End),
    ];
    for (kind, discover, initialize) in kinds {
        let has_modern = kind != "legacy";
        let has_legacy = kind.starts_with("both") || kind == "legacy";
        for (prefers, is_spoken) in [(Era::Legacy, has_legacy), (Era::Modern, has_modern)] {
            let builder = Client::builder().prefer(prefers);
            let (client, methods, _) = probe_by(builder, move |_| discover(), move |_| initialize()).await;
            let info = client.unwrap().server();
            assert_eq!(info.revision.era() == prefers, is_spoken, "{kind}, {prefers:?}: {methods:?}");
            let other = Era::ALL.into_iter().find(|era| *era != info.revision.era()).unwrap();
            let expected = match is_spoken {
                // Failed revisions are excluded; untried ones are unknown, unless the server lists its revisions.
                false => no,
                true if prefers == Era::Modern && kind == "both, and says so" => yes,
                true => unknown,
            };
            assert_eq!(info.eras.supports(info.revision.era()), yes, "{kind}, {prefers:?}");
            assert_eq!(info.eras.supports(other), expected, "{kind}, {prefers:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn probe_error_or_timeout_leads_to_initialize_on_the_same_connection() {
    for code in [-32601, -32602, -32600, -32000, -32001, -32603, 0, 42] {
        let (client, methods, _) = probe(move |_| error(code), |_| initialized("2025-06-18")).await;
        assert_eq!(client.unwrap().server().revision, Revision::V2025_06_18, "{code}");
        assert_eq!(methods, [[DISCOVER, INITIALIZE, INITIALIZED]]);
    }
    let (client, methods, _) = probe(|_| ScriptAction::Wait, |_| initialized("2024-11-05")).await;
    assert_eq!(client.unwrap().server().revision, Revision::V2024_11_05);
    assert_eq!(methods, [[DISCOVER, INITIALIZE, INITIALIZED]]);
}

#[tokio::test(start_paused = true)]
async fn server_that_never_answers_the_probe_is_connected_after_a_second() {
    let began = tokio::time::Instant::now();
    let (client, methods, _) = probe(|_| ScriptAction::Wait, |_| initialized("2024-11-05")).await;
    assert_eq!(client.unwrap().server().revision, Revision::V2024_11_05);
    assert_eq!(began.elapsed(), ClientLimits::default().initialize_delay);
    assert_eq!(methods, [[DISCOVER, INITIALIZE, INITIALIZED]]);
}

#[tokio::test(start_paused = true)]
async fn server_that_answers_the_probe_late_is_modern() {
    // One that rejects `initialize`, or does not answer it, stays; one that has opened a session is opened again.
    type LateCase<'a> = (fn() -> ScriptAction, &'a [&'a [&'a str]]);
    let cases: [LateCase<'_>; 3] = [
        (|| error(-32601), &[&[DISCOVER, INITIALIZE]]),
        (|| ScriptAction::Wait, &[&[DISCOVER, INITIALIZE]]),
        (|| initialized("2025-11-25"), &[&[DISCOVER, INITIALIZE, INITIALIZED], &[DISCOVER]]),
    ];
    for (initialize, expected) in cases {
        let (script, opener) = ScriptedPeer::new(|number, message| match message["method"].as_str() {
            Some(DISCOVER) if number > 0 => described(),
            _ => ScriptAction::Wait,
        });
        let connecting = tokio::spawn(async move { within(Client::connect(opener)).await });
        // It starts slowly, and answers in order once it is there.
        tokio::task::yield_now().await;
        let peer = loop {
            match script.sent().first().map(Vec::len) {
                Some(2) => break script.newest(),
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        for (sent, answer) in script.sent()[0].iter().zip([described(), initialize()]) {
            let (kind, value) = match answer {
                ScriptAction::Result(result) => ("result", result),
                ScriptAction::Error(error) => ("error", error),
                _ => continue,
            };
            peer.receive(json!({ "jsonrpc": "2.0", "id": sent["id"], kind: value }).to_string());
        }
        let client = connecting.await.unwrap().unwrap();
        assert_eq!(client.server().revision, Revision::V2026_07_28);
        assert_eq!(script.methods(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_refuses_initialize_before_it_answers_the_probe_is_modern() {
    let (script, opener) = ScriptedPeer::new(|_, message| match message["method"].as_str() {
        Some(INITIALIZE) => error(-32022),
        _ => ScriptAction::Wait,
    });
    let connecting = tokio::spawn(async move { within(Client::connect(opener)).await });
    while script.sent().first().is_none_or(|sent| sent.len() < 2) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let ScriptAction::Result(result) = described() else { panic!() };
    let id = script.sent()[0][0]["id"].clone();
    script.newest().receive(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string());
    assert_eq!(connecting.await.unwrap().unwrap().server().revision, Revision::V2026_07_28);
    assert_eq!(script.methods(), [[DISCOVER, INITIALIZE]]);
}

#[tokio::test(start_paused = true)]
async fn slow_modern_server_is_probed_again_after_version_error() {
    for refused in [|| unsupported(json!(["2026-07-28"])), || error(-32022)] {
        let slow = |asked| if asked == 0 { ScriptAction::Wait } else { described() };
        let (client, methods, _) = probe(slow, move |_| refused()).await;
        assert_eq!(client.unwrap().server().revision, Revision::V2026_07_28);
        assert_eq!(methods, [[DISCOVER, INITIALIZE, DISCOVER]]);
    }
    // One that goes on like this is given up.
    let (client, methods, _) = probe(|_| ScriptAction::Wait, |_| error(-32022)).await;
    let Err(Error::Unreachable(error)) = client else { panic!() };
    assert_eq!(error.attempts.len(), 4, "{error:?}");
    assert_eq!(methods, [[DISCOVER, INITIALIZE, DISCOVER, INITIALIZE]]);
}

#[tokio::test(start_paused = true)]
async fn server_that_closes_on_probe_is_reopened_without_probe() {
    let (client, methods, _) = probe(|_| ScriptAction::End, |_| initialized("2025-03-26")).await;
    assert_eq!(client.unwrap().server().revision, Revision::V2025_03_26);
    assert_eq!(methods, [vec![DISCOVER], vec![INITIALIZE, INITIALIZED]]);
}

#[tokio::test(start_paused = true)]
async fn server_silent_after_probe_is_reopened_without_probe() {
    for (is_first, ends) in [(AtomicBool::new(true), true), (AtomicBool::new(true), false)] {
        let shake = move |_: &Value| match is_first.swap(false, Ordering::SeqCst) {
            true if ends => ScriptAction::End,
            true => ScriptAction::Wait,
            false => initialized("2024-11-05"),
        };
        let (client, methods, _) = probe(|_| ScriptAction::Wait, shake).await;
        assert_eq!(client.unwrap().server().revision, Revision::V2024_11_05);
        assert_eq!(methods, [vec![DISCOVER, INITIALIZE], vec![INITIALIZE, INITIALIZED]]);
    }
}

#[tokio::test(start_paused = true)]
async fn listed_revisions_of_the_server_are_used() {
    let (client, methods, script) =
        probe(|_| unsupported(json!(["2025-03-26", "2024-11-05"])), |_| initialized("2025-03-26")).await;
    assert_eq!(client.unwrap().server().revision, Revision::V2025_03_26);
    assert_eq!(methods, [[DISCOVER, INITIALIZE, INITIALIZED]]);
    assert_eq!(script.sent()[0][1]["params"]["protocolVersion"], "2025-03-26");

    let again = |asked| if asked == 0 { unsupported(json!(["2026-07-28"])) } else { described() };
    let (client, methods, script) = probe(again, |_| panic!()).await;
    assert_eq!(client.unwrap().server().revision, Revision::V2026_07_28);
    assert_eq!(methods, [[DISCOVER, DISCOVER]]);
    assert_ne!(script.sent()[0][0]["id"], script.sent()[0][1]["id"]);
}

#[tokio::test(start_paused = true)]
async fn connect_without_common_revision_fails_without_handshake() {
    for (discover, asked) in [
        (json!(["2099-01-01"]), 1),
        // The attempts are bounded if the server refuses a revision that it lists.
        (json!(["2026-07-28"]), 2),
    ] {
        let (client, methods, _) = probe(move |_| unsupported(discover.clone()), |_| panic!()).await;
        let Err(Error::Unreachable(unreachable)) = client else { panic!("{client:?}") };
        assert_eq!((methods[0].len(), unreachable.attempts.len()), (asked, asked));
    }
}

#[tokio::test(start_paused = true)]
async fn connect_error_lists_every_attempt() {
    let (client, ..) = probe(|_| error(-32601), |_| error(-32603)).await;
    let Err(Error::Unreachable(unreachable)) = client else { panic!() };
    let attempts: Vec<String> = unreachable.attempts.iter().map(ToString::to_string).collect();
    assert_eq!(
        attempts,
        ["server/discover at 2026-07-28: error -32601: no", "initialize at 2025-11-25: error -32603: no"]
    );
    assert_eq!(unreachable.target, "a script");
}

#[tokio::test(start_paused = true)]
async fn handshake_has_its_own_timeout() {
    let began = tokio::time::Instant::now();
    let (client, ..) = probe(|_| ScriptAction::Wait, |_| ScriptAction::Wait).await;
    let Err(Error::Unreachable(unreachable)) = client else { panic!() };
    assert!(unreachable.cause.contains("10s"), "{unreachable}");
    // The delay after the probe, the handshake beside it, and one with the program started again, which is shorter.
    assert_eq!(began.elapsed().as_secs(), 1 + 30 + 10);
}

#[tokio::test(start_paused = true)]
async fn initialize_rejects_modern_revisions() {
    for revision in ["2026-07-28", "2099-01-01", ""] {
        let (client, ..) = probe(|_| error(-32601), move |_| initialized(revision)).await;
        assert!(matches!(client, Err(Error::Unreachable(_))), "{revision}");
    }
    let (client, ..) = probe(|_| error(-32601), |_| initialized("2024-10-07")).await;
    assert_eq!(client.unwrap().server().revision, Revision::V2024_11_05);
}

#[tokio::test(start_paused = true)]
async fn pinned_revision_is_used_without_probe_or_fails() {
    for revision in Revision::ALL {
        let (script, opener) =
            ScriptedPeer::new(|_, message| crate::support::or_handshake(message, |_| ScriptAction::Wait));
        let client = within(Client::builder().pin(revision).connect(opener)).await.unwrap();
        assert_eq!(client.server().revision, revision);
        assert_eq!(script.methods()[0].len(), if revision == Revision::NEWEST { 1 } else { 2 });
    }
    let (_, opener) = ScriptedPeer::new(|_, message| match message["method"].as_str() {
        Some(INITIALIZE) => initialized("2025-11-25"),
        _ => error(-32601),
    });
    for pin in [Revision::V2026_07_28, Revision::V2025_03_26] {
        let client = within(Client::builder().pin(pin).connect(opener.clone())).await;
        let Err(Error::Unreachable(unreachable)) = client else { panic!("{client:?}") };
        assert!(unreachable.cause.contains(pin.as_str()), "{unreachable}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_probe_response_is_dropped() {
    let (client, _, script) = probe(|_| ScriptAction::Wait, |_| initialized("2025-11-25")).await;
    let client = client.unwrap();
    let probe = &script.sent()[0][0];
    script.newest().receive(json!({ "jsonrpc": "2.0", "id": probe["id"], "result": {} }).to_string());
    let (ping, ()) = tokio::join!(client.ping(), async {
        let ping = script.wait_for("ping").await;
        assert_ne!(ping["id"], probe["id"]);
        script.newest().receive(json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} }).to_string());
    });
    ping.unwrap();
    // Nothing was cancelled: a server that does not know the question would not know what that is.
    assert!(!script.methods()[0].contains(&"notifications/cancelled".to_owned()));
}
