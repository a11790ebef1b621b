use std::sync::Arc;

use super::ChangeNotifier;
use crate::change::ServerChange;
use crate::part::Parts;
use crate::registry::AdvertisedFeatures;

/// A provider of any kind, as the server sees it.
pub(crate) trait PartSource: Send + Sync {
    /// Returns the provider's name.
    fn name(&self) -> String;

    /// Returns the features that the server advertises because of the provider.
    fn features(&self) -> AdvertisedFeatures;

    /// Returns the change that subscribers are notified of when the list has changed.
    fn change(&self) -> ServerChange;

    /// Makes parts of the provider's current list.
    fn parts(self: Arc<Self>) -> Parts;

    /// Passes the provider the notifier for changes of its list.
    fn set_notifier(&self, notifier: ChangeNotifier);
}
