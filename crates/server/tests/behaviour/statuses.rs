//! What a handler refuses is its answer, whatever the HTTP status that the same words have before there is a handler.

use serde_json::{Value, json};
use trunkline_server::protocol::{Era, Refusal, Revision};
use trunkline_server::{Prompt, Server, Tool, ToolError};

use crate::support::{Client, ModernRequest, host, legacy};

/// The rows with a status that the protocol gives them from any source, and the one that lets the client retry later.
const TELLING: [Refusal; 5] = [
    Refusal::MISSING_CAPABILITY,
    Refusal::METHOD_NOT_FOUND,
    Refusal::INSUFFICIENT_SCOPE,
    Refusal::TOO_MANY,
    Refusal::RATE_LIMITED,
];

fn server(refusal: &Refusal) -> Server {
    let (of_tool, of_prompt) = (refusal.clone(), refusal.clone());
    let tool = Tool::new("refuses").run(move || {
        let refusal = of_tool.clone();
        async move { Err::<(), _>(ToolError::refused(refusal)) }
    });
    let prompt = Prompt::new("refuses").get(move || {
        let refusal = of_prompt.clone();
        async move { Err::<String, _>(ToolError::refused(refusal)) }
    });
    Server::new("s").with(tool).with(prompt)
}

#[tokio::test(start_paused = true)]
async fn handler_refusal_is_http_status_200() {
    for refusal in Refusal::TABLE {
        let host = host(&server(refusal));
        let client = Client::new(&host).initialized("2025-11-25").await;
        for method in ["tools/call", "prompts/get"] {
            let params = json!({ "name": "refuses" });
            let modern: Value = ModernRequest::new(method).param("name", json!("refuses")).value();
            for (era, message) in [(Era::Legacy, legacy(1, method, params)), (Era::Modern, modern)] {
                let telling = TELLING.iter().any(|row| refusal.is_same_kind(row));
                let expected = if telling { refusal.status(era) } else { 200 };
                let answered = client.post(&message).await;
                assert_eq!(answered.status, expected, "{} of {method}, {era:?}", refusal.name());
                let answer = answered.answer().await;
                assert_eq!(answer["id"], 1);
                let has_no_code = refusal.as_tool_result(Revision::NEWEST_LEGACY).is_some();
                if has_no_code && method == "tools/call" && era == Era::Legacy {
                    assert_eq!(answer["result"]["isError"], true, "an era without a code for it: {answer}");
                } else {
                    assert_eq!(answer["error"]["code"], refusal.code(era), "{}", refusal.name());
                }
            }
        }
    }
}
