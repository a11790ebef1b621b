use schemars::JsonSchema;
use serde::Serialize;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::{CallToolResult, Content};

use crate::error::ToolError;
use crate::json::Json;

/// What a tool's handler may return.
///
/// Text is content. Numbers, booleans and [`Json`] are structured content, with a schema and with the same as text
/// for clients that only read text.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a tool can return",
    note = "wrap serializable values in `Json`"
)]
pub trait IntoToolResult {
    /// Returns the JSON Schema of the structured content, if there is one.
    fn output_schema() -> Option<serde_json::Value> {
        None
    }

    /// Makes the result.
    ///
    /// # Errors
    /// The refusal that the caller gets instead.
    fn into_tool_result(self) -> Result<CallToolResult, Refusal>;
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        Ok(self)
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        Ok(CallToolResult::default())
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        Ok(CallToolResult::text(self))
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        Ok(CallToolResult::text(self))
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        Ok(CallToolResult { content: self, ..CallToolResult::default() })
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn output_schema() -> Option<serde_json::Value> {
        Self::schema()
    }

    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        self.to_raw().map(CallToolResult::structured)
    }
}

/// Structured content of a shape that is known only at run time.
impl IntoToolResult for serde_json::Value {
    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        Ok(CallToolResult::structured(self.into()))
    }
}

macro_rules! structured {
    ($($type:ty)*) => {
        $(impl IntoToolResult for $type {
            fn output_schema() -> Option<serde_json::Value> {
                Json::<Self>::schema()
            }

            fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
                Json(self).into_tool_result()
            }
        })*
    };
}

structured!(bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);

impl<R: IntoToolResult, E: Into<ToolError>> IntoToolResult for Result<R, E> {
    fn output_schema() -> Option<serde_json::Value> {
        R::output_schema()
    }

    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        match self {
            Ok(result) => result.into_tool_result(),
            Err(error) => error.into().into_tool_result(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_protocol::RawJson;

    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct SumResult {
        total: i64,
    }

    fn made<R: IntoToolResult>(result: R) -> (Option<Value>, CallToolResult) {
        (R::output_schema(), result.into_tool_result().unwrap())
    }

    fn structured(json: &Value) -> CallToolResult {
        CallToolResult::structured(RawJson::from(json))
    }

    #[test]
    fn text_is_content_and_values_are_structured_with_a_schema() {
        let text = || (None, CallToolResult::text("hi"));
        assert_eq!(made("hi"), text());
        assert_eq!(made("hi".to_owned()), text());
        assert_eq!(made(Content::text("hi")), text());
        assert_eq!(made(vec![Content::text("hi")]), text());
        assert_eq!(made(Ok::<_, ToolError>("hi")), text());
        assert_eq!(made(()), (None, CallToolResult::default()));
        assert_eq!(made(7_i64), (Some(json!({ "type": "integer" })), structured(&json!(7))));
        assert_eq!(made(true), (Some(json!({ "type": "boolean" })), structured(&json!(true))));
        let schema = json!({
            "type": "object",
            "properties": { "total": { "type": "integer" } },
            "required": ["total"],
        });
        assert_eq!(made(Json(SumResult { total: 7 })), (Some(schema), structured(&json!({ "total": 7 }))));
        assert_eq!(made(json!([1])), (None, structured(&json!([1]))));
    }

    #[test]
    fn tool_result_of_an_error_is_an_error_result_and_of_a_refusal_a_refusal() {
        let said: Result<i64, ToolError> = Err(ToolError::new("no"));
        assert_eq!(said.into_tool_result(), Ok(CallToolResult::error("no")));
        let refused: Result<i64, Refusal> = Err(Refusal::TOO_MANY);
        assert_eq!(refused.into_tool_result(), Err(Refusal::TOO_MANY));
    }

    #[test]
    fn value_without_json_form_is_an_internal_error() {
        let pairs = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert!(Json(pairs).into_tool_result().unwrap_err().is_same_kind(&Refusal::INTERNAL));
    }
}
