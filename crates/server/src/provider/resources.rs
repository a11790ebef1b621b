use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_protocol::model::{self, ReadResourceResult};

use super::{ChangeNotifier, PartSource};
use crate::call::{BoxFuture, Context};
use crate::change::ServerChange;
use crate::error::ToolError;
use crate::part::{Part as _, Parts};
use crate::registry::AdvertisedFeatures;
use crate::resource::{Resource, ResourceTemplate};

/// A source of resources that are known only at run time.
///
/// ```
/// use trunkline_server::protocol::model::{self, ReadResourceResult, ResourceContents};
/// use trunkline_server::{BoxFuture, Context, ResourceProvider, Server, ToolError};
///
/// struct Shelf(Vec<String>);
///
/// impl ResourceProvider for Shelf {
///     fn source(&self) -> String {
///         "shelf".to_owned()
///     }
///
///     fn resources(&self) -> Vec<model::Resource> {
///         self.0.iter().map(|book| model::Resource::new(format!("book://{book}"), book)).collect()
///     }
///
///     fn read(&self, uri: &str, _: Context) -> BoxFuture<'static, Result<Option<ReadResourceResult>, ToolError>> {
///         let exists = self.0.iter().any(|book| uri == format!("book://{book}"));
///         let read = exists.then(|| ReadResourceResult::new(vec![ResourceContents::text(uri, "Once upon a time")]));
///         Box::pin(async { Ok(read) })
///     }
/// }
///
/// let server = Server::new("library").resources_from(Shelf(vec!["tale".to_owned()]));
/// assert!(server.handle().is_ok());
/// ```
pub trait ResourceProvider: Send + Sync + 'static {
    /// Returns the provider's name, for messages about URIs that two sources have.
    fn source(&self) -> String;

    /// Returns the current resources.
    fn resources(&self) -> Vec<model::Resource>;

    /// Returns the templates of further resources, which need not be listed; by default none.
    fn templates(&self) -> Vec<model::ResourceTemplate> {
        Vec::new()
    }

    /// Reads a resource that is listed or fits a template; `None` is "not found".
    fn read(
        &self,
        uri: &str,
        context: Context,
    ) -> BoxFuture<'static, Result<Option<ReadResourceResult>, ToolError>>;

    /// Returns the variables of a template for which [`ResourceProvider::complete`] suggests values; by default none.
    fn completed_variables(&self, _uri_template: &str) -> Vec<String> {
        Vec::new()
    }

    /// Suggests values for a variable, from what was typed so far and from the other variables.
    fn complete(
        &self,
        _uri_template: &str,
        _variable: &str,
        _typed: String,
        _given: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Receives the notifier for changes of a list or a content; a provider without changes needs none.
    fn set_notifier(&self, _notifier: ChangeNotifier) {}
}

pub(crate) struct ResourceSource<P>(pub(crate) P);

impl<P: ResourceProvider> PartSource for ResourceSource<P> {
    fn name(&self) -> String {
        self.0.source()
    }

    fn features(&self) -> AdvertisedFeatures {
        AdvertisedFeatures { resources: true, ..AdvertisedFeatures::default() }
    }

    fn change(&self) -> ServerChange {
        ServerChange::Resources
    }

    fn parts(self: Arc<Self>) -> Parts {
        let mut parts = Parts::default();
        for described in self.0.resources() {
            let provider = self.clone();
            let resource = Resource::from_description(described)
                .read(move |context: Context, uri: String| provider.0.read(&uri, context));
            resource.add_to(&mut parts);
        }
        for described in self.0.templates() {
            let (provider, uri_template) = (self.clone(), described.uri_template.clone());
            let mut template = ResourceTemplate::from_description(described)
                .read_uri(move |context, uri| provider.0.read(uri, context));
            for variable in self.0.completed_variables(&uri_template) {
                let (provider, uri_template) = (self.clone(), uri_template.clone());
                template = template.complete(variable.clone(), move |typed, given| {
                    provider.0.complete(&uri_template, &variable, typed, given)
                });
            }
            template.add_to(&mut parts);
        }
        parts
    }

    fn set_notifier(&self, notifier: ChangeNotifier) {
        self.0.set_notifier(notifier);
    }
}
