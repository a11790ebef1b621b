//! One superset type per concept of the protocol.
//!
//! A type has a field for everything that any revision can say and that we decide on. What we only carry stays raw: `_meta`
//! in `meta`, and members that no revision knows in `rest`, verbatim and in order. Each type is read with `read` and written
//! with `write`, which asks the [`Dialect`](crate::codec::Dialect) what its reader can understand.

#[macro_use]
mod object;

mod annotations;
mod capabilities;
mod content;
mod field;
mod identity;
mod input;
mod malformed;
mod prompt;
pub(crate) mod repair;
mod resource;
mod result;
mod server_capabilities;
mod tool;
mod tool_content;

pub use self::annotations::{Annotations, Role, ToolAnnotations};
pub use self::capabilities::ClientCapabilities;
pub use self::content::{Content, EmbeddedResource, MediaContent, TextContent};
pub use self::identity::{Icon, Implementation};
pub use self::input::{
    CreateMessageRequest, CreateMessageResult, ElicitAction, ElicitResult, FormElicitRequest, InputRequest,
    InputResponse, InvalidInputResponse, Root, ToolChoice, UnsupportedFeature, UrlElicitRequest,
};
pub use self::malformed::MalformedModel;
pub use self::prompt::{GetPromptResult, Prompt, PromptArgument, PromptMessage};
pub use self::repair::{ITEM_DEPTH, RepairLog, RepairedModel};
pub use self::resource::{Resource, ResourceBody, ResourceContents, ResourceTemplate};
pub use self::result::{CacheHint, CacheScope, CallToolResult, CompleteResult, ReadResourceResult};
pub use self::server_capabilities::{ListCapability, ResourcesCapability, ServerCapabilities};
pub use self::tool::Tool;
pub use self::tool_content::{ToolResultContent, ToolUseContent};
