//! What a subscriber wants to be notified of.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use trunkline_protocol::emit;
use trunkline_session::{Principal, SessionId};

use crate::access_grant::AccessGrant;
use crate::caller_identity::CallerIdentity;
use crate::shown_lists::ShownLists;

/// A recipient of change notifications.
///
/// Two are equal whatever their credentials are: a client with a new token is the same recipient.
#[derive(Clone, Debug)]
pub struct ChangeSubscriber {
    /// Its principal.
    pub principal: Principal,
    /// The legacy session, if there is one.
    pub session: Option<SessionId>,
    /// The connection or stream over which it listens, where there is no session.
    pub connection: Option<SessionId>,
    /// What the credential grants with which it subscribed; `None` for one without.
    pub grant: Option<Arc<AccessGrant>>,
}

impl ChangeSubscriber {
    /// Returns the verified identity.
    pub fn identity(&self) -> CallerIdentity<'_> {
        CallerIdentity::new(&self.principal, self.grant.as_ref())
    }

    /// Returns the id that distinguishes it from others for as long as it listens: its session, or else its
    /// connection or stream.
    pub fn client_id(&self) -> Option<SessionId> {
        self.session.or(self.connection)
    }
}

impl PartialEq for ChangeSubscriber {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.session, of.connection);
        self.principal == other.principal && key(self) == key(other)
    }
}

impl Eq for ChangeSubscriber {}

impl Hash for ChangeSubscriber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.principal, self.session, self.connection).hash(state);
    }
}

/// The changes that a subscriber wants to be notified of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// The subscriber, if it is known.
    pub subscriber: Option<ChangeSubscriber>,
    /// The lists that the subscriber was shown, if they are tracked: a legacy session's are, and a handler may
    /// track others.
    pub shown_lists: Option<ShownLists>,
    /// The list of tools changes.
    pub tools: bool,
    /// The list of prompts changes.
    pub prompts: bool,
    /// The list of resources changes.
    pub resources: bool,
    /// The content of these resources, or of parts of them, changes.
    pub uris: BTreeSet<String>,
}

impl SubscriptionFilter {
    /// The most resources that one subscriber may watch.
    pub const MAX_URIS: usize = 1024;

    /// The most bytes that the URIs of those resources may have together.
    pub const MAX_URI_BYTES: usize = 128 << 10;

    /// Everything but the content of single resources.
    pub fn all_lists() -> Self {
        Self { tools: true, prompts: true, resources: true, ..Self::default() }
    }

    /// Reports whether a filter names more resources than a subscriber may watch.
    pub(crate) fn is_too_large(&self) -> bool {
        let bytes: usize = self.uris.iter().map(String::len).sum();
        self.uris.len() > Self::MAX_URIS || bytes > Self::MAX_URI_BYTES
    }

    pub(super) fn matches(&self, change: &ServerChange) -> bool {
        match change {
            ServerChange::Tools => self.tools,
            ServerChange::Prompts => self.prompts,
            ServerChange::Resources => self.resources,
            ServerChange::ResourceUpdated(uri) => self.watched_uri(uri).is_some(),
        }
    }

    /// Returns the watched URI that contains a resource.
    pub(super) fn watched_uri(&self, uri: &str) -> Option<&String> {
        self.uris.iter().find(|watched| is_part_of(uri, watched))
    }
}

/// Returns how many bytes the subscription to a resource counts as: its URI and what is kept beside it.
pub(crate) fn watched_uri_bytes(uri: &str) -> usize {
    const OVERHEAD: usize = 64;
    uri.len() + OVERHEAD
}

/// Reports whether a resource is the watched one or lies below it.
fn is_part_of(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || watched.ends_with('/'))
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of resource templates.
    Resources,
    /// The content of a resource. All subscribers share one copy of its URI.
    ResourceUpdated(Arc<str>),
}

impl ServerChange {
    /// Returns the method of the notification for the change.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::ResourceUpdated(_) => "notifications/resources/updated",
        }
    }

    /// Writes the notification in the form that legacy revisions have.
    pub(crate) fn legacy_message(&self) -> String {
        match self {
            Self::ResourceUpdated(uri) => emit::notification(self.method(), |writer| {
                writer.open_object();
                writer.plain_key("uri");
                writer.string(uri);
                writer.close_object();
            }),
            _ => emit::bare_notification(self.method()),
        }
    }
}
