//! The server: its parts, and the handle through which it runs.

mod handle;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::model::{CacheHint, CallToolResult, Icon, Implementation};
use trunkline_protocol::{JsonObject, RawJson};

pub use self::handle::ServerHandle;
pub(crate) use self::handle::ServerInner;
use crate::error::{BuildError, CallError};
use crate::interceptor::{Interceptor, Layers};
use crate::part::{Part, Parts};
use crate::provider::{self, PartSource, PromptProvider, ResourceProvider, ToolProvider};
use crate::registry::{AdvertisedFeatures, PartRegistry};

/// The default number of items on one page of a list.
const PAGE_SIZE: usize = 1000;

/// A server under construction.
///
/// Problems of its parts are collected and reported once, when it is first built, served or called.
#[must_use = "a server does nothing until it is served or called"]
pub struct Server {
    settings: ServerSettings,
    features: AdvertisedFeatures,
    parts: Parts,
    sources: Vec<Arc<dyn PartSource>>,
    built: OnceLock<Result<ServerHandle, BuildError>>,
}

/// The settings that do not change while a server runs.
#[derive(Clone, Debug)]
struct ServerSettings {
    identity: Implementation,
    instructions: Option<String>,
    page_size: usize,
    list_cache: CacheHint,
    layers: Layers,
    extensions: JsonObject,
    experimental: JsonObject,
}

impl Server {
    /// Names a server.
    pub fn new(name: impl Into<String>) -> Self {
        let settings = ServerSettings {
            identity: Implementation::new(name, "0.0.0"),
            instructions: None,
            page_size: PAGE_SIZE,
            list_cache: CacheHint::default(),
            layers: Layers::new(),
            extensions: JsonObject::new(),
            experimental: JsonObject::new(),
        };
        Self {
            settings,
            features: AdvertisedFeatures::default(),
            parts: Parts::default(),
            sources: Vec::new(),
            built: OnceLock::new(),
        }
    }

    /// Sets the version, in any form; it is `0.0.0` unless set.
    pub fn version(self, version: impl Into<String>) -> Self {
        self.set(|settings| settings.identity.version = version.into())
    }

    /// Sets what humans call the server.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.set(|settings| settings.identity.title = Some(title.into()))
    }

    /// Sets the description of the server's purpose.
    pub fn description(self, description: impl Into<String>) -> Self {
        self.set(|settings| settings.identity.description = Some(description.into()))
    }

    /// Sets the URL of the server's website.
    pub fn website(self, url: impl Into<String>) -> Self {
        self.set(|settings| settings.identity.website_url = Some(url.into()))
    }

    /// Adds a picture.
    pub fn icon(self, icon: Icon) -> Self {
        self.set(|settings| settings.identity.icons.push(icon))
    }

    /// Sets the advice for the model that uses the server.
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.set(|settings| settings.instructions = Some(instructions.into()))
    }

    /// Sets how many items one page of a list has, at least one; 1000 unless set.
    pub fn page_size(self, items: usize) -> Self {
        self.set(|settings| settings.page_size = items.max(1))
    }

    /// Sets how long lists may be cached, and in which scope; by default not at all.
    pub fn cache(self, cache: CacheHint) -> Self {
        self.set(|settings| settings.list_cache = cache)
    }

    /// Advertises tools even while there are none.
    pub fn advertise_tools(mut self) -> Self {
        self.features.tools = true;
        self.set(|_| {})
    }

    /// Advertises prompts even while there are none.
    pub fn advertise_prompts(mut self) -> Self {
        self.features.prompts = true;
        self.set(|_| {})
    }

    /// Advertises resources even while there are none.
    pub fn advertise_resources(mut self) -> Self {
        self.features.resources = true;
        self.set(|_| {})
    }

    /// Advertises completions even while nothing has any.
    pub fn advertise_completions(mut self) -> Self {
        self.features.completions = true;
        self.set(|_| {})
    }

    /// Declares a protocol extension that the server supports, such as `com.example/tables`, with its settings, which
    /// are an object. It is not sent to clients of revisions without extensions.
    pub fn extension(self, id: impl Into<String>, settings: impl Into<RawJson>) -> Self {
        self.set(|declared| declared.extensions.set(id.into(), settings.into()))
    }

    /// Declares something that the server can do outside of the protocol, with its settings, which are an object.
    pub fn experimental(self, name: impl Into<String>, settings: impl Into<RawJson>) -> Self {
        self.set(|declared| declared.experimental.set(name.into(), settings.into()))
    }

    /// Adds a part, several parts, or what a function makes.
    pub fn with(mut self, part: impl Part) -> Self {
        part.add_to(&mut self.parts);
        self.set(|_| {})
    }

    /// Adds the tools of a provider, after the server's own parts and earlier providers.
    pub fn tools_from(self, provider: impl ToolProvider) -> Self {
        self.source(provider::ToolSource(provider))
    }

    /// Adds the prompts of a provider, after the server's own parts and earlier providers.
    pub fn prompts_from(self, provider: impl PromptProvider) -> Self {
        self.source(provider::PromptSource(provider))
    }

    /// Adds the resources of a provider, after the server's own parts and earlier providers.
    pub fn resources_from(self, provider: impl ResourceProvider) -> Self {
        self.source(provider::ResourceSource(provider))
    }

    fn source(mut self, source: impl PartSource + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self.set(|_| {})
    }

    /// Adds an interceptor around every call.
    ///
    /// The first that is added is the outermost: it sees a call first and its result last.
    pub fn layer(self, interceptor: impl Interceptor) -> Self {
        self.set(|settings| settings.layers.push(interceptor))
    }

    /// Changes the settings, and discards an earlier build.
    fn set(mut self, change: impl FnOnce(&mut ServerSettings)) -> Self {
        change(&mut self.settings);
        self.built = OnceLock::new();
        self
    }

    /// Builds the server, once; every later call returns the same handle.
    ///
    /// # Errors
    /// [`BuildError`] with everything that is wrong with the parts.
    pub fn handle(&self) -> Result<ServerHandle, BuildError> {
        self.built.get_or_init(|| self.build()).clone()
    }

    fn build(&self) -> Result<ServerHandle, BuildError> {
        let declared = self.settings.extensions.iter().chain(self.settings.experimental.iter());
        let odd = declared.filter(|(_, settings)| settings.kind() != JsonKind::Object);
        let odd: Vec<_> =
            odd.map(|(name, _)| format!("the settings of `{name}` are not an object")).collect();
        if !odd.is_empty() {
            return Err(BuildError::new(odd));
        }
        let offers =
            self.sources.iter().fold(self.features, |offers, source| offers.union(source.features()));
        let empty = PartRegistry { features: offers, ..PartRegistry::default() };
        let registry = empty.with(self.parts.clone()).map_err(BuildError::new)?;
        ServerHandle::new(self.settings.clone(), registry, self.sources.clone()).map_err(BuildError::new)
    }

    /// Calls a tool without any transport, as this process and in the newest revision.
    ///
    /// # Errors
    /// [`CallError`] if the server cannot be built or the call is refused; an error of the tool itself is a result.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<CallToolResult, CallError> {
        Ok(self.handle()?.call(tool, arguments).await?)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("settings", &self.settings)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}
