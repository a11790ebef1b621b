use std::fmt;
use std::sync::Arc;

use trunkline_protocol::model::{ClientCapabilities, Prompt, Resource, ResourceTemplate, Tool};

use crate::client::Inner;
use crate::error::Error;
use crate::list::List;

/// The lists of a server for clients of some capabilities; made by [`Client::lists_as`](crate::Client::lists_as).
#[derive(Clone)]
pub struct ListsAs {
    inner: Arc<Inner>,
    capabilities: ClientCapabilities,
}

impl ListsAs {
    pub(crate) fn new(inner: Arc<Inner>, capabilities: ClientCapabilities) -> Self {
        Self { inner, capabilities }
    }

    /// Lists the tools, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn tools(&self) -> Result<Arc<List<Tool>>, Error> {
        self.inner.list_as(&self.capabilities).await
    }

    /// Lists the prompts, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn prompts(&self) -> Result<Arc<List<Prompt>>, Error> {
        self.inner.list_as(&self.capabilities).await
    }

    /// Lists the resources, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn resources(&self) -> Result<Arc<List<Resource>>, Error> {
        self.inner.list_as(&self.capabilities).await
    }

    /// Lists the resource templates, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`](crate::Client::tools).
    pub async fn templates(&self) -> Result<Arc<List<ResourceTemplate>>, Error> {
        self.inner.list_as(&self.capabilities).await
    }
}

impl fmt::Debug for ListsAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListsAs").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}
