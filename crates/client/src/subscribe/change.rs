use trunkline_protocol::json::JsonKind;
use trunkline_protocol::model::ServerCapabilities;
use trunkline_protocol::{JsonWriter, Notification, RawJson};

/// The changes to subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// The list of tools.
    pub tools: bool,
    /// The list of prompts.
    pub prompts: bool,
    /// The lists of resources and of resource templates.
    pub resources: bool,
    /// The content of these resources.
    pub uris: Vec<String>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeEvent {
    /// Change notifications may have been lost.
    Missed,
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and of resource templates.
    Resources,
    /// The content of a resource, or of a sub-resource of a subscribed one.
    Resource(String),
}

impl ChangeFilter {
    /// The most resources of one stream.
    pub const MAX_URIS: usize = 1024;

    /// Subscribes to every list.
    pub fn all_lists() -> Self {
        Self { tools: true, prompts: true, resources: true, uris: Vec::new() }
    }

    /// Subscribes to the content of a resource too.
    #[must_use]
    pub fn with_uri(mut self, uri: impl Into<String>) -> Self {
        self.uris.push(uri.into());
        self
    }

    /// Reports whether the filter is empty.
    pub fn is_empty(&self) -> bool {
        !self.tools && !self.prompts && !self.resources && self.uris.is_empty()
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.uris.len() > Self::MAX_URIS
    }

    /// Leaves out the changes that a server does not support.
    pub(super) fn supported_by(&self, capabilities: &ServerCapabilities) -> Self {
        let resources = capabilities.resources.unwrap_or_default();
        Self {
            tools: self.tools && capabilities.tools.unwrap_or_default().list_changed,
            prompts: self.prompts && capabilities.prompts.unwrap_or_default().list_changed,
            resources: self.resources && resources.list_changed,
            uris: if resources.subscribe { self.uris.clone() } else { Vec::new() },
        }
    }

    pub(super) fn matches(&self, change: &ChangeEvent) -> bool {
        match change {
            ChangeEvent::Missed => true,
            ChangeEvent::Tools => self.tools,
            ChangeEvent::Prompts => self.prompts,
            ChangeEvent::Resources => self.resources,
            ChangeEvent::Resource(uri) => self.uris.iter().any(|watched| is_sub_resource(uri, watched)),
        }
    }

    /// Encodes the filter as in `subscriptions/listen`.
    pub(crate) fn to_raw(&self) -> RawJson {
        let mut writer = JsonWriter::with_capacity(64);
        writer.open_object();
        for (key, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if wanted {
                writer.member(key, &RawJson::TRUE);
            }
        }
        if !self.uris.is_empty() {
            writer.plain_key("resourceSubscriptions");
            writer.open_array();
            self.uris.iter().for_each(|uri| writer.string(uri));
            writer.close_array();
        }
        writer.close_object();
        writer.into_raw()
    }

    /// Parses the filter that a server has acknowledged.
    pub(super) fn read(raw: &RawJson) -> Self {
        let members = raw.members().unwrap_or_default();
        let is_set = |key: &str| members.get(key).is_some_and(|raw| raw.as_str() == "true");
        let uris = members.get("resourceSubscriptions").filter(|raw| raw.kind() == JsonKind::Array);
        let uris = uris.and_then(|raw| raw.elements().ok()).unwrap_or_default();
        Self {
            tools: is_set("toolsListChanged"),
            prompts: is_set("promptsListChanged"),
            resources: is_set("resourcesListChanged"),
            uris: uris.iter().filter_map(RawJson::as_text).map(Into::into).take(Self::MAX_URIS).collect(),
        }
    }
}

impl ChangeEvent {
    /// Parses a change notification.
    pub(crate) fn read(notification: &Notification) -> Option<Self> {
        match &*notification.method {
            "notifications/tools/list_changed" => Some(Self::Tools),
            "notifications/prompts/list_changed" => Some(Self::Prompts),
            "notifications/resources/list_changed" => Some(Self::Resources),
            "notifications/resources/updated" => {
                notification.params.members.text("uri").map(|uri| Self::Resource(uri.to_string()))
            }
            _ => None,
        }
    }
}

/// Reports whether a resource is the subscribed one or a sub-resource of it.
pub fn is_sub_resource(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || watched.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_below_a_subscribed_uri_is_a_sub_resource() {
        for (uri, watched, expected) in [
            ("file:///a", "file:///a", true),
            ("file:///a/b", "file:///a", true),
            ("file:///a/b", "file:///a/", true),
            ("file:///ab", "file:///a", false),
            ("file:///", "file:///a", false),
        ] {
            assert_eq!(is_sub_resource(uri, watched), expected, "{uri} {watched}");
        }
    }

    #[test]
    fn change_filter_round_trips_through_json() {
        for filter in [
            ChangeFilter::default(),
            ChangeFilter::all_lists(),
            ChangeFilter::default().with_uri("a:\"1\"").with_uri("a:2"),
        ] {
            assert_eq!(ChangeFilter::read(&filter.to_raw()), filter);
        }
        assert_eq!(ChangeFilter::read(&RawJson::NULL), ChangeFilter::default());
    }
}
