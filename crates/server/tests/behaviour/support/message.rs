use serde_json::{Map, Value, json};
use trunkline_server::protocol::meta;

/// A modern request under construction: the caller supports every input request, unless changed.
#[derive(Clone, Debug)]
pub(crate) struct ModernRequest {
    id: Value,
    method: &'static str,
    params: Map<String, Value>,
    about: Map<String, Value>,
}

impl ModernRequest {
    pub(crate) fn new(method: &'static str) -> Self {
        let mut about = Map::new();
        about.insert(meta::PROTOCOL_VERSION.to_owned(), json!("2026-07-28"));
        about.insert(meta::CLIENT_INFO.to_owned(), json!({ "name": "test", "version": "1" }));
        let everything = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        Self { id: json!(1), method, params: Map::new(), about }.capabilities(everything)
    }

    /// Calls a tool.
    pub(crate) fn tool(name: &str) -> Self {
        Self::new("tools/call").param("name", json!(name))
    }

    pub(crate) fn id(mut self, id: impl Into<Value>) -> Self {
        self.id = id.into();
        self
    }

    pub(crate) fn param(mut self, key: &str, value: Value) -> Self {
        self.params.insert(key.to_owned(), value);
        self
    }

    pub(crate) fn arguments(self, arguments: Value) -> Self {
        self.param("arguments", arguments)
    }

    pub(crate) fn capabilities(mut self, capabilities: Value) -> Self {
        self.about.insert(meta::CLIENT_CAPABILITIES.to_owned(), capabilities);
        self
    }

    pub(crate) fn token(mut self, token: impl Into<Value>) -> Self {
        self.about.insert(meta::PROGRESS_TOKEN.to_owned(), token.into());
        self
    }

    pub(crate) fn level(mut self, level: &str) -> Self {
        self.about.insert(meta::LOG_LEVEL.to_owned(), json!(level));
        self
    }

    pub(crate) fn answers(self, answers: Value) -> Self {
        self.param("inputResponses", answers)
    }

    /// Continues from the state of an earlier response.
    pub(crate) fn after(self, answer: &Value) -> Self {
        let state = state(answer);
        self.state(&state)
    }

    pub(crate) fn state(self, state: &str) -> Self {
        self.param("requestState", json!(state))
    }

    pub(crate) fn value(&self) -> Value {
        let mut params = self.params.clone();
        params.insert("_meta".to_owned(), Value::Object(self.about.clone()));
        json!({ "jsonrpc": "2.0", "id": self.id, "method": self.method, "params": params })
    }
}

/// Makes a legacy request.
pub(crate) fn legacy(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// Calls a tool in the legacy era.
pub(crate) fn legacy_tool(id: impl Into<Value>, name: &str) -> Value {
    legacy(id, "tools/call", json!({ "name": name, "arguments": {} }))
}

/// Makes a notification.
pub(crate) fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Answers a request of the server.
pub(crate) fn response(to: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": to["id"], "result": result })
}

/// Returns the code of an error.
#[track_caller]
pub(crate) fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("not an error: {answer}"))
}

/// Returns the first text of a tool's result.
#[track_caller]
pub(crate) fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("not a text: {answer}"))
}

/// Returns the text of a result that is not a failure.
#[track_caller]
pub(crate) fn tool_text(answer: &Value) -> &str {
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    text(answer)
}

/// Returns the outcome of a request, in one word or number.
pub(crate) fn outcome(answer: &Value) -> String {
    match (&answer["result"]["resultType"], &answer["error"]["code"]) {
        (Value::String(kind), _) => kind.clone(),
        (_, Value::Number(code)) => code.to_string(),
        _ => format!("neither: {answer}"),
    }
}

/// Returns the keys of the questions in an answer, in their order.
#[track_caller]
pub(crate) fn questions(answer: &Value) -> Vec<String> {
    assert_eq!(outcome(answer), "input_required", "{answer}");
    answer["result"]["inputRequests"]
        .as_object()
        .map(|asked| asked.keys().cloned().collect())
        .unwrap_or_default()
}

/// Returns the state in an answer.
#[track_caller]
pub(crate) fn state(answer: &Value) -> String {
    let state = answer["result"]["requestState"].as_str();
    state.unwrap_or_else(|| panic!("no state: {answer}")).to_owned()
}
