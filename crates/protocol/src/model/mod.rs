//! One superset type per concept of the protocol.
//!
//! A type has a field for every member of any revision that our code acts on. The others stay raw: `_meta` in `meta`,
//! and members that no revision defines in `rest`, verbatim and in order. Each type is read with `read` and written
//! with `write`, which consults the [`Dialect`](crate::codec::Dialect) of its reader.

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
