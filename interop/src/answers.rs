use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use trunkline_client::protocol::model::{
    ClientCapabilities, Content, CreateMessageResult, ElicitAction, InputRequest, InputResponse, Role, Root,
};
use trunkline_client::protocol::{JsonObject, RawJson, Refusal};
use trunkline_client::{BoxFuture, InputHandler, InputOrigin};

use crate::seen::Seen;

/// The reply of the model to every sampling request.
pub(crate) const MODEL_SAYS: &str = "forty-two";

/// Responds to the input requests of servers, and records them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    action: Mutex<Option<ElicitAction>>,
    roots: Mutex<Vec<Root>>,
    asked: Seen<(InputOrigin, InputRequest)>,
}

impl Answers {
    /// Sets the response to forms and URLs from now on.
    pub(crate) fn will(&self, action: ElicitAction) {
        *self.shared.action.lock() = Some(action);
    }

    /// Sets the roots from now on.
    pub(crate) fn have_roots(&self, uris: impl IntoIterator<Item = String>) {
        let roots = uris.into_iter().map(|uri| Root { uri, ..Root::default() }).collect();
        *self.shared.roots.lock() = roots;
    }

    /// Returns the input requests so far.
    pub(crate) fn asked(&self) -> &Seen<(InputOrigin, InputRequest)> {
        &self.shared.asked
    }

    /// Answers a question.
    pub(crate) fn reply(&self, question: &InputRequest) -> InputResponse {
        let action = self.shared.action.lock();
        match (question, action.unwrap_or(ElicitAction::Accept)) {
            (InputRequest::Sampling(_), _) => InputResponse::Sampling(CreateMessageResult {
                role: Role::Assistant,
                content: vec![Content::text(MODEL_SAYS)],
                model: "oracle".to_owned(),
                stop_reason: Some("endTurn".to_owned()),
                meta: None,
                rest: JsonObject::new(),
            }),
            (InputRequest::Roots, _) => InputResponse::Roots(self.shared.roots.lock().clone()),
            (_, ElicitAction::Decline) => InputResponse::decline(),
            (_, ElicitAction::Cancel) => InputResponse::cancel(),
            (InputRequest::Form(form), ElicitAction::Accept) => {
                InputResponse::accept(Some(fill_in(&form.schema)))
            }
            (InputRequest::Url(_), ElicitAction::Accept) => InputResponse::accept(None),
        }
    }
}

impl InputHandler for Answers {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_form().with_url().with_sampling().with_roots()
    }

    fn answer(
        &self,
        origin: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        let answer = self.reply(&question);
        self.shared.asked.put((origin, question));
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Fills in a form with the name Ada, the first of every choice and the defaults.
fn fill_in(schema: &RawJson) -> RawJson {
    let schema: Value = schema.decode().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let content: Map<_, _> = properties
        .into_iter()
        .flatten()
        .map(|(name, field)| (name.clone(), field.get("default").cloned().unwrap_or_else(|| value(field))))
        .collect();
    Value::Object(content).into()
}

fn value(field: &Value) -> Value {
    let choices = field.get("enum").and_then(Value::as_array).and_then(|choices| choices.first());
    match (field.get("type").and_then(Value::as_str), field.get("format").and_then(Value::as_str)) {
        _ if choices.is_some() => choices.cloned().unwrap_or_default(),
        (Some("boolean"), _) => json!(true),
        (Some("integer" | "number"), _) => json!(7),
        (Some("array"), _) => json!([]),
        (_, Some("email")) => json!("ada@example.com"),
        (_, Some("uri")) => json!("https://example.com/ada"),
        (_, Some("date")) => json!("1815-12-10"),
        _ => json!("ada"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_is_filled_in_with_values_of_the_right_type() {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string" },
            "choice": { "type": "string", "enum": ["a", "b"] },
            "age": { "type": "integer", "default": 30 },
            "size": { "type": "number" },
            "on": { "type": "boolean" },
            "mail": { "type": "string", "format": "email" },
            "many": { "type": "array", "items": { "type": "string" } },
        } });
        let filled: Value = fill_in(&schema.into()).decode().unwrap();
        let expected = json!({ "name": "ada", "choice": "a", "age": 30, "size": 7, "on": true,
            "mail": "ada@example.com", "many": [] });
        assert_eq!(filled, expected);
    }
}
