use std::sync::Arc;

use trunkline_protocol::model::{self, CallToolResult};
use trunkline_protocol::{RawJson, Refusal};

use super::{ChangeNotifier, PartSource};
use crate::call::{BoxFuture, Context};
use crate::change::ServerChange;
use crate::error::ToolError;
use crate::part::{Part as _, Parts};
use crate::registry::AdvertisedFeatures;
use crate::tool::Tool;

/// A source of tools that are known only at run time.
///
/// Arguments are always checked against the tool's input schema before [`ToolProvider::call`], and structured content
/// against its output schema afterwards.
///
/// ```
/// use serde_json::json;
/// use trunkline_server::protocol::RawJson;
/// use trunkline_server::protocol::model::{self, CallToolResult};
/// use trunkline_server::{BoxFuture, Context, Server, ToolError, ToolProvider};
///
/// struct Fruit(Vec<String>);
///
/// impl ToolProvider for Fruit {
///     fn source(&self) -> String {
///         "fruit".to_owned()
///     }
///
///     fn tools(&self) -> Vec<model::Tool> {
///         let schema = RawJson::from(&json!({ "type": "object" }));
///         self.0.iter().map(|name| model::Tool::new(name, schema.clone())).collect()
///     }
///
///     fn call(&self, tool: &str, _: Context, _: RawJson) -> BoxFuture<'static, Result<CallToolResult, ToolError>> {
///         let result = CallToolResult::text(format!("one {tool}"));
///         Box::pin(async { Ok(result) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let server = Server::new("shop").tools_from(Fruit(vec!["pear".to_owned()]));
/// let result = server.call("pear", json!({})).await.unwrap();
/// assert_eq!(result.content[0].as_text(), Some("one pear"));
/// # });
/// ```
pub trait ToolProvider: Send + Sync + 'static {
    /// Returns the provider's name, for messages about names that two sources have.
    fn source(&self) -> String;

    /// Returns the current tools.
    fn tools(&self) -> Vec<model::Tool>;

    /// Calls one of them.
    fn call(
        &self,
        tool: &str,
        context: Context,
        arguments: RawJson,
    ) -> BoxFuture<'static, Result<CallToolResult, ToolError>>;

    /// Receives the notifier for changes of the list; a provider with a fixed list needs none.
    fn set_notifier(&self, _notifier: ChangeNotifier) {}
}

/// A provider of tools with a prefix before their names, so that they do not collide with those of another.
#[derive(Clone, Debug)]
pub struct PrefixedProvider<P> {
    prefix: String,
    provider: P,
}

impl<P: ToolProvider> PrefixedProvider<P> {
    /// Puts a prefix, such as `web_`, before the names of a provider's tools.
    pub fn new(prefix: impl Into<String>, provider: P) -> Self {
        Self { prefix: prefix.into(), provider }
    }
}

impl<P: ToolProvider> ToolProvider for PrefixedProvider<P> {
    fn source(&self) -> String {
        self.provider.source()
    }

    fn tools(&self) -> Vec<model::Tool> {
        let mut tools = self.provider.tools();
        for tool in &mut tools {
            tool.name.insert_str(0, &self.prefix);
        }
        tools
    }

    fn call(
        &self,
        tool: &str,
        context: Context,
        arguments: RawJson,
    ) -> BoxFuture<'static, Result<CallToolResult, ToolError>> {
        match tool.strip_prefix(&self.prefix) {
            Some(tool) => self.provider.call(tool, context, arguments),
            None => Box::pin(std::future::ready(Err(ToolError::refused(Refusal::INVALID_PARAMS)))),
        }
    }

    fn set_notifier(&self, notifier: ChangeNotifier) {
        self.provider.set_notifier(notifier);
    }
}

pub(crate) struct ToolSource<P>(pub(crate) P);

impl<P: ToolProvider> PartSource for ToolSource<P> {
    fn name(&self) -> String {
        self.0.source()
    }

    fn features(&self) -> AdvertisedFeatures {
        AdvertisedFeatures { tools: true, ..AdvertisedFeatures::default() }
    }

    fn change(&self) -> ServerChange {
        ServerChange::Tools
    }

    fn parts(self: Arc<Self>) -> Parts {
        let mut parts = Parts::default();
        for described in self.0.tools() {
            let (provider, name) = (self.clone(), described.name.clone());
            let tool = Tool::from_description(described)
                .run_raw(move |context, arguments| provider.0.call(&name, context, arguments));
            tool.add_to(&mut parts);
        }
        parts
    }

    fn set_notifier(&self, notifier: ChangeNotifier) {
        self.0.set_notifier(notifier);
    }
}
