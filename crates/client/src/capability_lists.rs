use std::fmt;
use std::sync::Arc;

use trunkline_protocol::model::{ClientCapabilities, Prompt, Resource, ResourceTemplate, Tool};

use crate::client::ClientInner;
use crate::error::Error;
use crate::list::ItemList;

/// The lists that a server has for clients with given capabilities; see
/// [`Client::lists_for`](crate::Client::lists_for).
#[derive(Clone)]
pub struct CapabilityLists {
    inner: Arc<ClientInner>,
    capabilities: ClientCapabilities,
}

impl CapabilityLists {
    pub(crate) fn new(inner: Arc<ClientInner>, capabilities: ClientCapabilities) -> Self {
        Self { inner, capabilities }
    }

    /// Lists the tools, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn tools(&self) -> Result<Arc<ItemList<Tool>>, Error> {
        self.inner.list_for(&self.capabilities).await
    }

    /// Lists the prompts, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn prompts(&self) -> Result<Arc<ItemList<Prompt>>, Error> {
        self.inner.list_for(&self.capabilities).await
    }

    /// Lists the resources, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn resources(&self) -> Result<Arc<ItemList<Resource>>, Error> {
        self.inner.list_for(&self.capabilities).await
    }

    /// Lists the resource templates, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn templates(&self) -> Result<Arc<ItemList<ResourceTemplate>>, Error> {
        self.inner.list_for(&self.capabilities).await
    }
}

impl fmt::Debug for CapabilityLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapabilityLists").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}
