//! How what an attributed function returns becomes something that a tool, a prompt or a resource may return.
//!
//! A type that already is such a thing stays as it is; any other that can be written as JSON is wrapped in [`Json`], also
//! inside of `Result`. The attributes expand to `(&&&Returned::of(&it)).for_tool().convert(it)`. The compiler looks for the
//! method on the type as it is and then on what it refers to, so the first of the traits below that fits is taken.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::GetPromptResult;

use crate::error::ToolError;
use crate::json::Json;
use crate::prompt::IntoPromptResult;
use crate::resource::IntoReadResult;
use crate::tool::IntoToolResult;

/// Stands for a type that a function returns.
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

impl<T: IntoToolResult> ToolAsItIs for &&Returned<T> {}

/// What is inside of the `Result` becomes structured content.
#[derive(Clone, Copy, Debug)]
pub struct ToolOk;

impl ToolOk {
    /// Wraps the value.
    ///
    /// # Errors
    /// The error that the function returned.
    pub fn convert<T: ToolValue, E: HandlerError>(self, value: Result<T, E>) -> Result<T::Output, ToolError> {
        value.map(T::wrap).map_err(E::into_tool_error)
    }
}

/// The second choice for tools.
pub trait ToolInResult {
    /// Chooses.
    fn for_tool(&self) -> ToolOk {
        ToolOk
    }
}

impl<T, E> ToolInResult for &Returned<Result<T, E>> {}

/// The value becomes structured content.
#[derive(Clone, Copy, Debug)]
pub struct ToolJson;

impl ToolJson {
    /// Wraps the value.
    pub fn convert<T: ToolValue>(self, value: T) -> T::Output {
        value.wrap()
    }
}

/// The last choice for tools.
pub trait ToolAsJson {
    /// Chooses.
    fn for_tool(&self) -> ToolJson {
        ToolJson
    }
}

impl<T> ToolAsJson for Returned<T> {}

/// A value that can become structured content, with a schema.
// The associated type ends the compiler's search when the trait is missing, so that a mistake is told once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a tool can return",
    label = "a tool cannot return this",
    note = "a tool returns text, numbers, booleans, `Content`, `CallToolResult`, `Json`, nothing, a type that derives \
            `serde::Serialize` and `schemars::JsonSchema`, or a `Result` of one of these"
)]
pub trait ToolValue: Sized {
    /// What it is wrapped in.
    type Output;

    /// Wraps the value.
    fn wrap(self) -> Self::Output;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> ToolValue for T {
    type Output = Json<T>;

    fn wrap(self) -> Json<T> {
        Json(self)
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

impl<T: IntoReadResult> ReadAsItIs for &&&&Returned<T> {}

/// What may be inside of the `Result` becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadOkSome;

impl ReadOkSome {
    /// Wraps the value.
    ///
    /// # Errors
    /// The error that the function returned.
    pub fn convert<T: ReadValue, E: HandlerError>(
        self,
        value: Result<Option<T>, E>,
    ) -> Result<Option<T::Output>, ToolError> {
        value.map(|found| found.map(T::wrap)).map_err(E::into_tool_error)
    }
}

/// The second choice for resources.
pub trait ReadInResultOfOption {
    /// Chooses.
    fn for_read(&self) -> ReadOkSome {
        ReadOkSome
    }
}

impl<T, E> ReadInResultOfOption for &&&Returned<Result<Option<T>, E>> {}

/// What is inside of the `Result` becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadOk;

impl ReadOk {
    /// Wraps the value.
    ///
    /// # Errors
    /// The error that the function returned.
    pub fn convert<T: ReadValue, E: HandlerError>(self, value: Result<T, E>) -> Result<T::Output, ToolError> {
        value.map(T::wrap).map_err(E::into_tool_error)
    }
}

/// The third choice for resources.
pub trait ReadInResult {
    /// Chooses.
    fn for_read(&self) -> ReadOk {
        ReadOk
    }
}

impl<T, E> ReadInResult for &&Returned<Result<T, E>> {}

/// What may be there becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadSome;

impl ReadSome {
    /// Wraps the value.
    pub fn convert<T: ReadValue>(self, value: Option<T>) -> Option<T::Output> {
        value.map(T::wrap)
    }
}

/// The fourth choice for resources.
pub trait ReadInOption {
    /// Chooses.
    fn for_read(&self) -> ReadSome {
        ReadSome
    }
}

impl<T> ReadInOption for &Returned<Option<T>> {}

/// The value becomes JSON.
#[derive(Clone, Copy, Debug)]
pub struct ReadJson;

impl ReadJson {
    /// Wraps the value.
    pub fn convert<T: ReadValue>(self, value: T) -> T::Output {
        value.wrap()
    }
}

/// The last choice for resources.
pub trait ReadAsJson {
    /// Chooses.
    fn for_read(&self) -> ReadJson {
        ReadJson
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
pub trait ReadValue: Sized {
    /// What it is wrapped in.
    type Output;

    /// Wraps the value.
    fn wrap(self) -> Self::Output;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ReadValue for T {
    type Output = Json<T>;

    fn wrap(self) -> Json<T> {
        Json(self)
    }
}
