//! Converts the return value of an attributed function into something that a tool, a prompt or a resource may return.
//!
//! A type that already is such a thing stays as it is; any other that can be written as JSON is wrapped in [`Json`],
//! also inside of `Result`. The attributes expand to `(&&&&Returned::of(&it)).for_tool().convert(it)`. Method
//! resolution tries the type itself and then what it refers to, so the first of the traits below that fits is taken.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::{CallToolResult, GetPromptResult, ReadResourceResult};

use crate::error::ToolError;
use crate::json::Json;
use crate::prompt::IntoPromptResult;
use crate::resource::{IntoReadResult, ReadRequest};
use crate::tool::IntoToolResult;

/// Represents the return type of a function.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// Names the type of a value.
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// The type may be returned as it is.
#[derive(Clone, Copy, Debug)]
pub struct AsItIs;

impl AsItIs {
    /// Returns the value.
    pub fn convert<T>(self, value: T) -> T {
        value
    }
}

/// The first choice for tools.
pub trait ToolAsItIs {
    /// Chooses.
    fn for_tool(&self) -> AsItIs {
        AsItIs
    }
}

impl<T: IntoToolResult> ToolAsItIs for &&&Returned<T> {}

/// What is inside of the `Result` may be returned as it is, and its error must become one of ours.
#[derive(Clone, Copy, Debug)]
pub struct OkAsItIs;

impl OkAsItIs {
    /// Converts the error.
    ///
    /// # Errors
    /// The error that the function returned.
    pub fn convert<T, E: HandlerError>(self, value: Result<T, E>) -> Result<T, ToolError> {
        value.map_err(E::into_tool_error)
    }
}

/// The second choice for tools.
pub trait ToolOkAsItIs {
    /// Chooses.
    fn for_tool(&self) -> OkAsItIs {
        OkAsItIs
    }
}

impl<T: IntoToolResult, E> ToolOkAsItIs for &&Returned<Result<T, E>> {}

/// What is inside of the `Result` becomes structured content.
#[derive(Clone, Copy, Debug)]
pub struct ToolOkAsJson;

impl ToolOkAsJson {
    /// Wraps the value.
    ///
    /// # Errors
    /// The error that the function returned.
    pub fn convert<T, E: HandlerError>(self, value: Result<T, E>) -> Result<ToolJson<T>, ToolError> {
        value.map(ToolJson).map_err(E::into_tool_error)
    }
}

/// The third choice for tools.
pub trait ToolInResult {
    /// Chooses.
    fn for_tool(&self) -> ToolOkAsJson {
        ToolOkAsJson
    }
}

impl<T, E> ToolInResult for &Returned<Result<T, E>> {}

/// The value becomes structured content.
#[derive(Clone, Copy, Debug)]
pub struct ToolValueAsJson;

impl ToolValueAsJson {
    /// Wraps the value.
    pub fn convert<T>(self, value: T) -> ToolJson<T> {
        ToolJson(value)
    }
}

/// The last choice for tools.
pub trait ToolAsJson {
    /// Chooses.
    fn for_tool(&self) -> ToolValueAsJson {
        ToolValueAsJson
    }
}

impl<T> ToolAsJson for Returned<T> {}

/// A value that can become structured content, with a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a tool can return",
    label = "a tool cannot return this",
    note = "a tool returns text, numbers, booleans, `Content`, `CallToolResult`, `Json`, nothing, a type that derives \
            `serde::Serialize` and `schemars::JsonSchema`, or a `Result` of one of these"
)]
pub trait ToolValue: Serialize + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> ToolValue for T {}

/// Structured content, as [`Json`]; a missing trait is reported in terms of what a tool can return.
#[derive(Debug)]
pub struct ToolJson<T>(T);

impl<T: ToolValue> IntoToolResult for ToolJson<T> {
    fn output_schema() -> Option<serde_json::Value> {
        Json::<T>::output_schema()
    }

    fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        Json(self.0).into_tool_result()
    }
}

/// An error that a handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error that a handler can return",
    label = "this error cannot be told to the caller",
    note = "return `ToolError`, or a type that implements `std::error::Error`; `map_err(ToolError::said)` makes a \
            `ToolError` of anything that can be displayed"
)]
pub trait HandlerError {
    /// Converts the error.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> HandlerError for E {
    fn into_tool_error(self) -> ToolError {
        self.into()
    }
}

/// Makes a prompt's result of what its function returned.
///
/// # Errors
/// The refusal that the caller gets instead.
pub fn prompt<T: IntoPromptResult>(value: T) -> Result<GetPromptResult, Refusal> {
    value.into_prompt_result()
}

/// The first choice for resources.
pub trait ReadAsItIs {
    /// Chooses.
    fn for_read(&self) -> AsItIs {
        AsItIs
    }
}

impl<T: IntoReadResult> ReadAsItIs for &&&&&Returned<T> {}

/// The second choice for resources.
pub trait ReadOkAsItIs {
    /// Chooses.
    fn for_read(&self) -> OkAsItIs {
        OkAsItIs
    }
}

impl<T: IntoReadResult, E> ReadOkAsItIs for &&&&Returned<Result<T, E>> {}

/// What may be inside of the `Result` becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadOkSomeAsJson;

impl ReadOkSomeAsJson {
    /// Wraps the value.
    ///
    /// # Errors
    /// The error that the function returned.
    pub fn convert<T, E: HandlerError>(
        self,
        value: Result<Option<T>, E>,
    ) -> Result<Option<ReadJson<T>>, ToolError> {
        value.map(|found| found.map(ReadJson)).map_err(E::into_tool_error)
    }
}

/// The third choice for resources.
pub trait ReadInResultOfOption {
    /// Chooses.
    fn for_read(&self) -> ReadOkSomeAsJson {
        ReadOkSomeAsJson
    }
}

impl<T, E> ReadInResultOfOption for &&&Returned<Result<Option<T>, E>> {}

/// What is inside of the `Result` becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadOkAsJson;

impl ReadOkAsJson {
    /// Wraps the value.
    ///
    /// # Errors
    /// The error that the function returned.
    pub fn convert<T, E: HandlerError>(self, value: Result<T, E>) -> Result<ReadJson<T>, ToolError> {
        value.map(ReadJson).map_err(E::into_tool_error)
    }
}

/// The fourth choice for resources.
pub trait ReadInResult {
    /// Chooses.
    fn for_read(&self) -> ReadOkAsJson {
        ReadOkAsJson
    }
}

impl<T, E> ReadInResult for &&Returned<Result<T, E>> {}

/// What may be there becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadSomeAsJson;

impl ReadSomeAsJson {
    /// Wraps the value.
    pub fn convert<T>(self, value: Option<T>) -> Option<ReadJson<T>> {
        value.map(ReadJson)
    }
}

/// The fifth choice for resources.
pub trait ReadInOption {
    /// Chooses.
    fn for_read(&self) -> ReadSomeAsJson {
        ReadSomeAsJson
    }
}

impl<T> ReadInOption for &Returned<Option<T>> {}

/// The value becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadValueAsJson;

impl ReadValueAsJson {
    /// Wraps the value.
    pub fn convert<T>(self, value: T) -> ReadJson<T> {
        ReadJson(value)
    }
}

/// The last choice for resources.
pub trait ReadAsJson {
    /// Chooses.
    fn for_read(&self) -> ReadValueAsJson {
        ReadValueAsJson
    }
}

impl<T> ReadAsJson for Returned<T> {}

/// A value that a resource can be written from.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a resource can return",
    label = "a resource cannot return this",
    note = "a resource returns text, bytes, `ResourceContents`, `Json`, a type that derives `serde::Serialize`, or an \
            `Option` or `Result` of one of these"
)]
pub trait ReadValue: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ReadValue for T {}

/// A resource of JSON, as [`Json`]; a missing trait is reported in terms of what a resource can return.
#[derive(Debug)]
pub struct ReadJson<T>(T);

impl<T: ReadValue> IntoReadResult for ReadJson<T> {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        Json(self.0).into_read_result(request)
    }
}
