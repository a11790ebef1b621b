use schemars::JsonSchema;
use serde::Serialize;
use trunkline_protocol::{RawJson, Refusal};

/// A value that a handler returns as JSON: structured content of a tool, or a resource of type `application/json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> Json<T> {
    /// Writes the value.
    pub(crate) fn to_raw(&self) -> Result<RawJson, Refusal> {
        RawJson::from_value(&self.0).map_err(|error| {
            tracing::error!(%error, "a handler's result has no JSON form");
            Refusal::INTERNAL.with_message("the result has no JSON form")
        })
    }
}

impl<T: JsonSchema> Json<T> {
    /// Returns the schema of the value, if it has any constraint.
    pub(crate) fn schema() -> Option<serde_json::Value> {
        crate::schema::output::<T>()
    }
}
