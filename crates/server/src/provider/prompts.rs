use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_protocol::model::{self, GetPromptResult};

use super::{ChangeNotifier, PartSource};
use crate::call::{BoxFuture, Context};
use crate::change::ServerChange;
use crate::error::ToolError;
use crate::part::{Part as _, Parts};
use crate::prompt::Prompt;
use crate::registry::AdvertisedFeatures;

/// A source of prompts that are known only at run time.
pub trait PromptProvider: Send + Sync + 'static {
    /// Returns the provider's name, for messages about names that two sources have.
    fn source(&self) -> String;

    /// Returns the current prompts.
    fn prompts(&self) -> Vec<model::Prompt>;

    /// Renders one of them; the required arguments are present.
    fn get(
        &self,
        prompt: &str,
        context: Context,
        arguments: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<GetPromptResult, ToolError>>;

    /// Returns the arguments of a prompt for which [`PromptProvider::complete`] suggests values; by default none.
    fn completed_arguments(&self, _prompt: &str) -> Vec<String> {
        Vec::new()
    }

    /// Suggests values for an argument, from what was typed so far and from the other arguments.
    fn complete(
        &self,
        _prompt: &str,
        _argument: &str,
        _typed: String,
        _given: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Receives the notifier for changes of the list; a provider with a fixed list needs none.
    fn set_notifier(&self, _notifier: ChangeNotifier) {}
}

pub(crate) struct PromptSource<P>(pub(crate) P);

impl<P: PromptProvider> PartSource for PromptSource<P> {
    fn name(&self) -> String {
        self.0.source()
    }

    fn features(&self) -> AdvertisedFeatures {
        AdvertisedFeatures { prompts: true, ..AdvertisedFeatures::default() }
    }

    fn change(&self) -> ServerChange {
        ServerChange::Prompts
    }

    fn parts(self: Arc<Self>) -> Parts {
        let mut parts = Parts::default();
        for described in self.0.prompts() {
            let (provider, name) = (self.clone(), described.name.clone());
            let mut prompt = Prompt::from_description(described);
            for argument in self.0.completed_arguments(&name) {
                let (provider, name) = (self.clone(), name.clone());
                prompt = prompt.complete(argument.clone(), move |typed, given| {
                    provider.0.complete(&name, &argument, typed, given)
                });
            }
            let prompt = prompt.get(move |context: Context, arguments: BTreeMap<String, String>| {
                provider.0.get(&name, context, arguments)
            });
            prompt.add_to(&mut parts);
        }
        parts
    }

    fn set_notifier(&self, notifier: ChangeNotifier) {
        self.0.set_notifier(notifier);
    }
}
