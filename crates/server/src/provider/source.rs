use std::sync::Arc;

use super::ChangeNotifier;
use crate::change::ServerChange;
use crate::part::Parts;
use crate::registry::AdvertisedFeatures;

/// A provider of any kind, as the server sees it.
pub(crate) trait PartSource: Send + Sync {
    /// Returns what the provider calls itself.
    fn name(&self) -> String;

    /// Returns what the server advertises because of the provider.
    fn features(&self) -> AdvertisedFeatures;

    /// Returns what whoever watches is told when the list has changed.
    fn change(&self) -> ServerChange;

    /// Makes parts of what the provider has at this moment.
    fn parts(self: Arc<Self>) -> Parts;

    /// Gives the provider the means to say that its list has changed.
    fn set_notifier(&self, notifier: ChangeNotifier);
}
