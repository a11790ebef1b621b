//! Every kind of question to clients of every revision: it is put in that revision's words, or refused with the feature, both
//! revisions and what would help.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trunkline_client::protocol::model::{
    ClientCapabilities, Content, CreateMessageResult, InputRequest, InputResponse, Role,
};
use trunkline_client::protocol::{JsonObject, Refusal, Revision};
use trunkline_client::{Client, ClientCall};
use trunkline_hub::Hub;

use crate::refusing::{calls, hub, outcome};
use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, TestServers, client, eager, named_principal, script, serve_hub,
    text_result, within,
};

/// A kind of input request: its capability, the first revision that has it, and the error for older clients.
struct QuestionKind {
    method: &'static str,
    params: fn() -> Value,
    since: Revision,
    feature: &'static str,
    /// Where older revisions lack more than this one thing.
    older: &'static [(Revision, &'static str)],
    /// The capability that it needs, and since when that can be declared.
    needs: (&'static str, Revision),
}

fn conversation() -> Value {
    json!({ "maxTokens": 1, "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }] })
}

const KINDS: &[QuestionKind] = &[
    QuestionKind {
        method: "elicitation/create",
        params: || json!({ "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } }),
        since: Revision::V2025_06_18,
        feature: "elicitation",
        older: &[],
        needs: ("elicitation.form", Revision::V2025_06_18),
    },
    QuestionKind {
        method: "elicitation/create",
        params: || {
            let choices = json!({ "type": "array", "items": { "type": "string", "enum": ["x", "y"] } });
            json!({ "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": { "a": choices } } })
        },
        since: Revision::V2025_11_25,
        feature: "form fields with several choices",
        older: &[(Revision::V2025_03_26, "elicitation")],
        needs: ("elicitation.form", Revision::V2025_06_18),
    },
    QuestionKind {
        method: "elicitation/create",
        params: || json!({ "mode": "url", "elicitationId": "e", "message": "?", "url": "https://x.example/" }),
        since: Revision::V2025_11_25,
        feature: "URL elicitation",
        older: &[],
        needs: ("elicitation.url", Revision::V2025_11_25),
    },
    QuestionKind {
        method: "sampling/createMessage",
        params: conversation,
        since: Revision::V2024_11_05,
        feature: "",
        older: &[],
        needs: ("sampling", Revision::V2024_11_05),
    },
    QuestionKind {
        method: "sampling/createMessage",
        params: || {
            let mut asked = conversation();
            asked["tools"] = json!([{ "name": "t", "inputSchema": { "type": "object" } }]);
            asked
        },
        since: Revision::V2025_11_25,
        feature: "tools in sampling",
        older: &[],
        needs: ("sampling.tools", Revision::V2025_11_25),
    },
];

impl QuestionKind {
    /// Returns the capability that clients of a revision lack, and the first revision that has it.
    fn asked(&self, down: Revision) -> (&'static str, Revision) {
        let older = self.older.iter().find(|(last, _)| down <= *last);
        (older.map_or(self.feature, |(_, feature)| feature), self.since)
    }

    /// The same, if the server could see that it need not ask.
    fn unasked(&self, down: Revision) -> (&'static str, Revision) {
        if down < self.needs.1 { self.needs } else { self.asked(down) }
    }

    fn required(&self) -> Value {
        self.needs.0.rsplit('.').fold(json!({}), |inner, name| json!({ name: inner }))
    }

    fn is_declared(&self, message: &Value) -> bool {
        let declared = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        self.needs.0.split('.').try_fold(declared, |inner, name| inner.get(name)).is_some()
    }
}

fn answered(question: &InputRequest) -> InputResponse {
    match question {
        InputRequest::Sampling(_) => InputResponse::Sampling(CreateMessageResult {
            role: Role::Assistant,
            content: vec![Content::text("!")],
            model: "m".to_owned(),
            stop_reason: None,
            meta: None,
            rest: JsonObject::new(),
        }),
        _ => InputResponse::accept(Some(json!({ "a": ["x"] }).into())),
    }
}

async fn everything(hub: &Hub, down: Revision) -> (Client, RecordingHandler) {
    let can = ClientCapabilities::default().with_form().with_url().with_sampling_tools();
    let answers = RecordingHandler::new(|question| Ok(answered(question))).declaring(can);
    let builder = Client::builder().pin(down).input(answers.clone());
    (client(&serve_hub(hub), builder, named_principal("ada")).await, answers)
}

fn check(
    got: &Value,
    kind: &QuestionKind,
    (feature, since): (&str, Revision),
    (down, up): (Revision, Revision),
    asked: usize,
) {
    if down >= kind.since {
        assert!(got["result"].is_object() && got["result"]["isError"] != true, "{down} to {up}: {got}");
        assert_eq!(asked, 1, "{down} to {up}");
        return;
    }
    assert_eq!(asked, 0, "{down} to {up}");
    let said = got["result"]["content"][0]["text"].as_str().or(got["message"].as_str()).unwrap();
    let sentence = format!("revision {down} has no {feature}: use a client that speaks {since}");
    assert!(said.contains(&sentence), "`{sentence}` is not in `{said}`");
    assert!(got["result"]["isError"] == true || got["code"] == -32603, "{got}");
    let data = got.get("data").unwrap_or(&got["result"]["_meta"]["trunkline/unbridgeable"]);
    assert_eq!(
        (&data["reason"], &data["feature"], &data["downstream"], &data["upstream"]),
        (&json!("unbridgeable"), &json!(feature), &json!(down.as_str()), &json!(up.as_str())),
        "{got}"
    );
    assert!(data["requiredCapabilities"].is_object(), "{got}");
}

#[tokio::test]
async fn modern_input_requests_are_relayed_or_refused_for_every_client_revision() {
    for kind in KINDS {
        let (_heard, _town, hub) = hub(NEW, |message| match message["params"].get("inputResponses") {
            None if !kind.is_declared(message) => {
                let data = json!({ "requiredCapabilities": kind.required() });
                ScriptReply::Error(json!({ "code": -32021, "message": "it would have to ask", "data": data }))
            }
            None => ScriptReply::Result(json!({ "resultType": "input_required", "requestState": "s",
                "inputRequests": { "k": { "method": kind.method, "params": (kind.params)() } } })),
            Some(_) => {
                ScriptReply::Result(json!({ "resultType": "complete", "content": [], "contents": [] }))
            }
        })
        .await;
        for down in Revision::ALL {
            for call in calls() {
                let (client, answers) = everything(&hub, down).await;
                let got = outcome(&client, call).await;
                check(&got, kind, kind.unasked(down), (down, NEW), answers.asked().len());
            }
        }
    }
}

#[tokio::test]
async fn legacy_input_requests_are_relayed_or_refused_for_every_client_revision() {
    for kind in KINDS {
        let numbers = Arc::new(AtomicUsize::new(0));
        let (_heard, opener) = script(move |peer, message| match message["method"].as_str() {
            Some("tools/call") => {
                let number = numbers.fetch_add(1, Ordering::SeqCst);
                let id = json!({ "number": number, "call": message["id"] }).to_string();
                peer.send(
                    json!({ "jsonrpc": "2.0", "id": id, "method": kind.method, "params": (kind.params)() }),
                );
                ScriptReply::Nothing
            }
            None => {
                let id: Value = serde_json::from_str(message["id"].as_str().unwrap()).unwrap();
                let mut result = text_result("done");
                result["isError"] = json!(message.get("error").is_some());
                peer.answer(&json!({ "id": id["call"] }), result);
                ScriptReply::Nothing
            }
            _ => ScriptReply::AsUsual,
        });
        let town = TestServers::default();
        town.add_script("a", opener, OLD);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        for down in Revision::ALL {
            let (client, answers) = everything(&hub, down).await;
            let got = outcome(&client, ClientCall::tool("a__t", json!({}))).await;
            check(&got, kind, kind.asked(down), (down, OLD), answers.asked().len());
        }
    }
}

#[tokio::test]
async fn input_refusal_of_a_legacy_client_fails_the_modern_servers_call() {
    let (heard, _town, hub) = hub(NEW, |_| {
        ScriptReply::Result(json!({ "resultType": "input_required", "requestState": "s",
            "inputRequests": { "k": { "method": "sampling/createMessage", "params": conversation() } } }))
    })
    .await;
    let answers = RecordingHandler::new(|_| Err(Refusal::application(-1, "not today")));
    let builder = Client::builder().pin(OLD).input(answers);
    let client = client(&serve_hub(&hub), builder, named_principal("ada")).await;
    let [call, read] = calls();
    let got = outcome(&client, call).await;
    let text = got["result"]["content"][0]["text"].as_str().unwrap();
    assert!(got["result"]["isError"] == true, "{got}");
    assert!(text.contains("sampling/createMessage") && text.contains("not today"), "{text}");
    let got = outcome(&client, read).await;
    assert_eq!(got["code"], -32603, "{got}");
    assert!(got["message"].as_str().unwrap().contains("sampling/createMessage"), "{got}");
    assert_eq!(heard.of("tools/call").len(), 1, "no answer was made up");
}
