//! The server SDK of trunkline: tools, prompts and resources, a handler context, and an edge per protocol era.

mod call;
mod change;
mod completer;
mod dispatch;
mod error;
mod function;
mod json;
mod part;
mod prompt;
mod registry;
mod resource;
mod schema;
mod server;
mod shorten;
#[cfg(test)]
mod testing;
mod text_arguments;
mod tool;

pub use self::call::{
    Ask, AskAll, AskError, BoxFuture, Call, Caller, Confirm, Context, Continuation, Fields, Form, Handler,
    Outcome, Round, ask, elicit, open_url, roots, sample,
};
pub use self::change::{Change, Changes, Filter, Subscription};
pub use self::error::{BuildError, CallError, ToolError};
pub use self::function::{Function, NoArguments, shape};
pub use self::json::Json;
pub use self::part::{Part, Parts};
pub use self::prompt::{IntoPromptResult, Prompt};
pub use self::resource::{Asked, FromUri, IntoReadResult, Resource, ResourceTemplate};
pub use self::server::{Server, ServerHandle};
pub use self::tool::{IntoToolResult, Tool};
