use std::sync::Arc;

use super::Notifier;
use crate::change::Change;
use crate::part::Parts;
use crate::registry::Offers;

/// A provider of any kind, as the server sees it.
pub(crate) trait Source: Send + Sync {
    /// Returns what the provider calls itself.
    fn name(&self) -> String;

    /// Returns what the server advertises because of the provider.
    fn offers(&self) -> Offers;

    /// Returns what whoever watches is told when the list has changed.
    fn change(&self) -> Change;

    /// Makes parts of what the provider has at this moment.
    fn parts(self: Arc<Self>) -> Parts;

    /// Gives the provider the means to say that its list has changed.
    fn watch(&self, notifier: Notifier);
}
