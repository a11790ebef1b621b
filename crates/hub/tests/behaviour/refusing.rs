//! Errors of a server, and what two revisions cannot both express, as messages for the caller.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientCall, Error};
use trunkline_hub::Hub;

use crate::support::{
    NEW, OLD, ScriptReply, ScriptedServer, TestServers, eager, plain_client, script, until, within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

/// A hub in front of a server with a function for the responses to calls and reads.
pub(crate) async fn hub(
    up: Revision,
    says: impl Fn(&Value) -> ScriptReply + Send + Sync + 'static,
) -> (ScriptedServer, TestServers, Hub) {
    let town = TestServers::default();
    let (heard, opener) = script(move |_, message| match message["method"].as_str() {
        Some("resources/list") => {
            ScriptReply::Result(json!({ "resources": [{ "uri": "x:y", "name": "y" }] }))
        }
        Some("tools/call" | "resources/read") => says(message),
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, up);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    (heard, town, hub)
}

pub(crate) fn calls() -> [ClientCall; 2] {
    [ClientCall::tool("a__t", json!({})), ClientCall::read("x:y")]
}

/// Returns what a call came to: the error, or the result under `result`.
pub(crate) async fn outcome(client: &Client, call: ClientCall) -> Value {
    match within(client.run(call)).await {
        Ok(result) => json!({ "result": result.decode::<Value>().unwrap() }),
        Err(Error::ErrorResponse(refused)) => {
            let data = refused.data.map(|data| data.decode::<Value>().unwrap());
            json!({ "code": refused.code, "message": refused.message, "data": data })
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn upstream_error_codes_pass_if_the_callers_revision_has_them() {
    let data = json!({ "why": "because" });
    for (code, legacy, modern) in [
        (-32603, json!({ "code": -32603, "data": data }), json!({ "code": -32603, "data": data })),
        (-32602, json!({ "code": -32602, "data": data }), json!({ "code": -32602, "data": data })),
        (-32601, json!({ "code": -32601, "data": data }), json!({ "code": -32601, "data": data })),
        (7, json!({ "code": 7, "data": data }), json!({ "code": 7, "data": data })),
        // For servers of old to use as they like, and taken by the newest revision for something else.
        (
            -32000,
            json!({ "code": -32000, "data": data }),
            json!({ "code": -32603, "data": { "code": -32000, "data": data } }),
        ),
        (
            -32019,
            json!({ "code": -32019, "data": data }),
            json!({ "code": -32603, "data": { "code": -32019, "data": data } }),
        ),
    ] {
        let error = json!({ "code": code, "message": "no", "data": data });
        let (_heard, _town, hub) = hub(OLD, move |_| ScriptReply::Error(error.clone())).await;
        for (down, expected) in [(OLD, &legacy), (NEW, &modern)] {
            let client = plain_client(&hub, down).await;
            for call in calls() {
                let got = outcome(&client, call).await;
                assert_eq!(got["message"], "no", "{code} to {down}");
                assert_eq!(
                    json!({ "code": got["code"], "data": got["data"] }),
                    *expected,
                    "{code} to {down}"
                );
            }
        }
    }
}

#[tokio::test]
async fn hop_errors_of_a_server_become_upstream_protocol_errors() {
    for code in [-32020, -32022] {
        let (_heard, _town, hub) =
            hub(NEW, move |_| ScriptReply::Error(json!({ "code": code, "message": "mismatch" }))).await;
        for down in BOTH {
            let client = plain_client(&hub, down).await;
            for call in calls() {
                let got = outcome(&client, call).await;
                assert_eq!(
                    (&got["code"], &got["data"]["reason"]),
                    (&json!(-32603), &json!("upstream_protocol"))
                );
                assert!(got["message"].as_str().unwrap().contains("upstream `a`"), "{got}");
            }
        }
    }
}

#[tokio::test]
async fn missing_resource_has_its_error_code_in_either_era() {
    for (up, error) in [
        (OLD, json!({ "code": -32002, "message": "gone" })),
        (OLD, json!({ "code": -32602, "message": "gone", "data": { "uri": "x:y" } })),
        (NEW, json!({ "code": -32602, "message": "gone", "data": { "uri": "x:y" } })),
    ] {
        let (_heard, _town, hub) = hub(up, move |_| ScriptReply::Error(error.clone())).await;
        for (down, code) in [(OLD, -32002), (NEW, -32602)] {
            let got = outcome(&plain_client(&hub, down).await, ClientCall::read("x:y")).await;
            let expected = json!({ "code": code, "message": "gone", "data": { "uri": "x:y" } });
            assert_eq!(got, expected, "{up} to {down}");
        }
    }
    // What is wrong with something else stays what it is.
    let error = json!({ "code": -32602, "message": "odd", "data": { "uri": "x:z" } });
    let (_heard, _town, hub) = hub(NEW, move |_| ScriptReply::Error(error.clone())).await;
    assert_eq!(outcome(&plain_client(&hub, OLD).await, ClientCall::read("x:y")).await["code"], -32602);
}

#[tokio::test]
async fn error_names_the_capability_that_the_caller_lacks() {
    let required = json!({ "elicitation": { "url": {} } });
    let error =
        json!({ "code": -32021, "message": "needs a page", "data": { "requiredCapabilities": required } });
    let (_heard, _town, hub) = hub(NEW, move |_| ScriptReply::Error(error.clone())).await;
    for call in calls() {
        let got = outcome(&plain_client(&hub, NEW).await, call).await;
        assert_eq!(
            (&got["code"], &got["data"]["requiredCapabilities"]),
            (&json!(-32021), &required),
            "{got}"
        );
    }
    let client = plain_client(&hub, OLD).await;
    let [call, read] = calls();
    let got = outcome(&client, call).await;
    let text = got["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(got["result"]["isError"], true);
    for word in ["needs a page", "elicitation", OLD.as_str()] {
        assert!(text.contains(word), "{text}");
    }
    let got = outcome(&client, read).await;
    let gap = json!({
        "reason": "unbridgeable",
        "feature": "elicitation.url",
        "downstream": OLD.as_str(),
        "upstream": NEW.as_str(),
        "requiredCapabilities": required,
    });
    assert_eq!((&got["code"], &got["data"]), (&json!(-32603), &gap), "{got}");
}

#[tokio::test]
async fn malformed_results_are_reported_as_upstream_faults() {
    for up in BOTH {
        for result in [json!(7), json!([]), json!({ "resultType": "riddle" })] {
            if up == OLD && result.is_object() {
                continue;
            }
            let nonsense = result.clone();
            let (_heard, _town, hub) = hub(up, move |_| ScriptReply::Result(nonsense.clone())).await;
            for down in BOTH {
                let client = plain_client(&hub, down).await;
                for call in calls() {
                    let got = outcome(&client, call).await;
                    let expected = (&json!(-32603), &json!("upstream_protocol"));
                    assert_eq!((&got["code"], &got["data"]["reason"]), expected, "{result} of {up}: {got}");
                }
            }
        }
    }
}

#[tokio::test]
async fn timed_out_call_is_cancelled_at_the_server_and_reported() {
    for up in BOTH {
        let (heard, town, hub) = hub(up, |_| ScriptReply::Nothing).await;
        let mut config = eager("a");
        config.timeout = Some(Duration::from_millis(50));
        within(hub.set_servers(vec![config])).await;
        for down in BOTH {
            let before = heard.of("notifications/cancelled").len();
            let got = outcome(&plain_client(&hub, down).await, ClientCall::tool("a__t", json!({}))).await;
            assert_eq!((&got["code"], &got["data"]["reason"]), (&json!(-32603), &json!("timeout")), "{got}");
            assert_eq!(got["data"]["retryable"], false, "the server may have run it: {got}");
            let cancelled = heard.received("notifications/cancelled", before + 1).await;
            let call = heard.of("tools/call").pop().unwrap();
            assert_eq!(cancelled.last().unwrap()["params"]["requestId"], call["id"]);
        }
        assert_eq!(town.connection_count("a"), 1, "nothing else is wrong with it");
    }
}

#[tokio::test]
async fn cancelled_call_is_cancelled_at_the_server_in_every_pair_of_eras() {
    for up in BOTH {
        let (heard, _town, hub) = hub(up, |_| ScriptReply::Nothing).await;
        for (at, down) in BOTH.into_iter().enumerate() {
            let client = plain_client(&hub, down).await;
            let call = tokio::spawn(async move { client.run(ClientCall::tool("a__t", json!({}))).await });
            let sent = heard.received("tools/call", at + 1).await;
            call.abort();
            let cancelled = heard.received("notifications/cancelled", at + 1).await;
            assert_eq!(cancelled[at]["params"]["requestId"], sent[at]["id"], "{down} to {up}");
            until(|| hub.status_of("a").unwrap().calls == 0).await;
        }
    }
}

#[tokio::test]
async fn call_with_case_variant_of_a_member_is_refused_before_the_server() {
    for up in BOTH {
        let (heard, _town, hub) = hub(up, |_| ScriptReply::AsUsual).await;
        for down in BOTH {
            let client = plain_client(&hub, down).await;
            for (method, params) in [
                ("tools/call", json!({ "name": "a__t", "Name": "denied" })),
                ("tools/call", json!({ "name": "a__t", "arguments": {}, "argumentſ": { "x": 1 } })),
                ("tools/call", json!({ "name": "a__t", "Tas\u{212a}": {} })),
                ("tools/call", json!({ "name": "a__t", "_meta": { "ProgressToken": 1 } })),
                ("resources/read", json!({ "uri": "x:y", "URI": "x:secret" })),
                (
                    "completion/complete",
                    json!({ "ref": { "type": "ref/resource", "uri": "x:y", "Uri": "x:secret" },
                            "argument": { "name": "n", "value": "" } }),
                ),
            ] {
                let got = outcome(&client, ClientCall::other(method, params.clone())).await;
                assert_eq!(got["code"], -32600, "{params}: {got}");
                assert!(got["message"].as_str().unwrap().contains("only in case"), "{params}: {got}");
            }
            for method in ["tools/call", "resources/read", "completion/complete"] {
                assert_eq!(heard.of(method).len(), 0, "{method} from {down} to {up}");
            }
        }
        // Unknown members and everything in the arguments pass as they came.
        let client = plain_client(&hub, NEW).await;
        let params = json!({ "name": "a__t", "arguments": { "name": 1, "Name": 2 }, "Naming": 3 });
        outcome(&client, ClientCall::other("tools/call", params)).await;
        let [call] = &heard.of("tools/call")[..] else { panic!() };
        assert_eq!(call["params"]["arguments"], json!({ "name": 1, "Name": 2 }));
        assert_eq!((&call["params"]["name"], &call["params"]["Naming"]), (&json!("t"), &json!(3)));
    }
}
