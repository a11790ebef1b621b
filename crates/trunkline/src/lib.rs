//! A toolkit for the Model Context Protocol: any client, any server, any revision.
//!
//! A server is made of tools, prompts and resources, and served over any transport. It supports all five revisions of
//! the protocol, from 2024-11-05 to 2026-07-28, for every client at once; no handler depends on the revision.
//!
//! ```
//! use trunkline::prelude::*;
//!
//! /// Adds two integers.
//! #[tool]
//! async fn add(a: i32, b: i32) -> i64 {
//!     i64::from(a) + i64::from(b)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> trunkline::Result<()> {
//! let server = Server::new("demo").with(add);
//! assert_eq!(server.call("add", serde_json::json!({"a": 2, "b": 3})).await?.structured.unwrap().as_str(), "5");
//! # Ok(())
//! # }
//! ```
//!
//! A client connects to whatever is there: an address, a command line, a name in an `mcp.json`, or a server in the same
//! process.
//!
//!
//! # Invariants
//!
//! - The README shows the smallest server as it is in `examples`: `readme_shows_the_smallest_server_verbatim`.
#![cfg_attr(feature = "client", doc = "```")]
#![cfg_attr(not(feature = "client"), doc = "```ignore")]
//! # use trunkline::prelude::*;
//! # /// Adds two integers.
//! # #[tool]
//! # async fn add(a: i32, b: i32) -> i64 { i64::from(a) + i64::from(b) }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> trunkline::Result<()> {
//! let client = Client::connect(Server::new("demo").with(add)).await?;
//! assert_eq!(client.call("add", serde_json::json!({"a": 2, "b": 3})).await?.text(), "5");
//! # Ok(())
//! # }
//! ```
//!
//! Whatever the attributes make, builders make too:
//!
//! ```
//! # use trunkline::prelude::*;
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Pair { a: i64, b: i64 }
//!
//! let add = Tool::new("add").description("Adds two integers.").run(async |Pair { a, b }| a + b);
//! # let _ = Server::new("demo").with(add);
//! ```

#[cfg(feature = "client")]
pub use trunkline_client as client;
#[cfg(feature = "client")]
pub use trunkline_client::{Client, InputHandler};
pub use trunkline_macros::{Form, parts, prompt, resource, tool};
pub use trunkline_server as server;
pub use trunkline_server::protocol;
pub use trunkline_server::{
    AskError, BuildError, CallError, ConcurrencyLimit, Context, EnvPolicy, Form, HandlerOutcome, Host,
    HostOptions, IncomingCall, Interceptor, Layers, LocalState, Metrics, Next, PersistentState, Prompt,
    Resource, ResourceTemplate, Sandbox, Secret, ServeError, Server, ServerHandle, ServerLimits,
    ServerTransport, Shutdown, StateError, StateKeys, Timeout, Tool, ToolError, Trace, http, stdio,
};
pub use trunkline_session as session;
#[cfg(feature = "store-file")]
pub use trunkline_store_file as store_file;
#[cfg(feature = "store-redis")]
pub use trunkline_store_redis as store_redis;
pub use trunkline_transport as transport;

/// What a program that serves returns; any error becomes one.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Everything that a handler usually needs.
pub mod prelude {
    #[cfg(feature = "client")]
    pub use trunkline_client::Client;
    pub use trunkline_macros::{Form, parts, prompt, resource, tool};
    pub use trunkline_server::protocol::LoggingLevel;
    pub use trunkline_server::protocol::model::{
        CallToolResult, Content, CreateMessageRequest, GetPromptResult, PromptMessage, ResourceContents,
    };
    pub use trunkline_server::{
        Confirm, Context, Form, Json, Prompt, Resource, ResourceTemplate, SchemaForm, Server,
        ServerTransport, Tool, ToolError, ask, http, sample, stdio,
    };
    pub use trunkline_transport::Target;
}

/// What the attributes expand to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;
    pub use trunkline_server::protocol::RawJson;
    pub use trunkline_server::protocol::model::PromptArgument;
    pub use trunkline_server::{Argument, Form, NoArguments, Part, Parts, SharedPart, ask, form, returned};
}
