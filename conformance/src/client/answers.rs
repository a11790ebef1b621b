use serde_json::{Map, Value, json};
use trunkline_client::protocol::model::{
    ClientCapabilities, Content, CreateMessageResult, InputRequest, InputResponse, Role, Root,
};
use trunkline_client::protocol::{JsonObject, RawJson, Refusal};
use trunkline_client::{BoxFuture, InputHandler, InputOrigin};

use super::connect_page::open_link;

/// The path of the pages at which users of a hub log in.
pub(super) const CONNECT_PATH: &str = "/connect/";

/// Responds to every kind of input request, like a user who accepts every default.
pub(super) struct Answers;

impl InputHandler for Answers {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots()
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        Box::pin(async move {
            match &question {
                // A link of a bridge to log in with; the suite itself names pages that do not exist.
                InputRequest::Url(request) if request.url.contains(CONNECT_PATH) => {
                    // The bridge logs why a login failed.
                    let is_opened = open_link(&request.url).await.is_ok();
                    Ok(if is_opened { InputResponse::accept(None) } else { InputResponse::cancel() })
                }
                other => answer(other),
            }
        })
    }
}

/// Answers one question.
pub(super) fn answer(question: &InputRequest) -> Result<InputResponse, Refusal> {
    match question {
        InputRequest::Form(form) => Ok(InputResponse::accept(Some(fill_in(&form.schema)))),
        InputRequest::Url(_) => Ok(InputResponse::accept(None)),
        InputRequest::Sampling(_) => Ok(InputResponse::Sampling(CreateMessageResult {
            role: Role::Assistant,
            content: vec![Content::text("A sampled answer.")],
            model: "conformance".to_owned(),
            stop_reason: Some("endTurn".to_owned()),
            meta: None,
            rest: JsonObject::new(),
        })),
        InputRequest::Roots => {
            Ok(InputResponse::Roots(vec![Root { uri: "file:///conformance".to_owned(), ..Root::default() }]))
        }
    }
}

/// Fills in a form: every default stays, and whatever has none gets the simplest value of its kind.
fn fill_in(schema: &RawJson) -> RawJson {
    let schema: Value = schema.decode().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let content: Map<_, _> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            (name.clone(), property.get("default").cloned().unwrap_or_else(|| simplest(property)))
        })
        .collect();
    Value::Object(content).into()
}

fn simplest(property: &Value) -> Value {
    let choices = property.get("enum").and_then(Value::as_array);
    match property.get("type").and_then(Value::as_str) {
        _ if choices.is_some_and(|choices| !choices.is_empty()) => {
            choices.and_then(|choices| choices.first()).cloned().unwrap_or_default()
        }
        Some("boolean") => json!(true),
        Some("integer" | "number") => property.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("array") => json!([]),
        _ => json!("an answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_is_filled_in_with_defaults_or_values_of_the_right_type() {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string", "default": "Ada" },
            "age": { "type": "integer", "default": 30 },
            "off": { "type": "boolean", "default": false },
            "on": { "type": "boolean" },
            "text": { "type": "string" },
            "least": { "type": "integer", "minimum": 7 },
            "choice": { "type": "string", "enum": ["a", "b"] },
            "many": { "type": "array", "items": { "type": "string" } },
        } });
        let filled: Value = fill_in(&schema.into()).decode().unwrap();
        assert_eq!(
            filled,
            json!({ "name": "Ada", "age": 30, "off": false, "on": true, "text": "an answer", "least": 7,
                "choice": "a", "many": [] })
        );
    }
}
