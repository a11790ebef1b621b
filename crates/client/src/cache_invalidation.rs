use trunkline_protocol::Method;

use crate::cache::CacheKey;
use crate::client::ClientInner;
use crate::subscribe::{ChangeEvent, is_sub_resource};

impl ClientInner {
    /// Invalidates cached results that a change has made stale, and notifies subscribers.
    pub(crate) fn publish_change(&self, change: &ChangeEvent) {
        self.invalidate_cache(change);
        self.changes.publish(change);
    }

    /// Invalidates cached results that a change has made stale.
    pub(crate) fn invalidate_cache(&self, change: &ChangeEvent) {
        self.cache.invalidate(|key| match (change, key) {
            (ChangeEvent::Missed, _) => true,
            (ChangeEvent::Tools, CacheKey::List(list)) => *list == Method::ToolsList.as_str(),
            (ChangeEvent::Prompts, CacheKey::List(list)) => *list == Method::PromptsList.as_str(),
            (ChangeEvent::Resources, CacheKey::List(list)) => {
                [Method::ResourcesList.as_str(), Method::TemplatesList.as_str()].contains(list)
            }
            (ChangeEvent::Resource(changed), CacheKey::Read(uri)) => is_sub_resource(changed, uri),
            _ => false,
        });
    }
}
