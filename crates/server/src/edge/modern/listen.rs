use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::{JsonObject, JsonWriter, Params, RawJson, Refusal, RequestId, Revision, emit, meta};

use crate::admission::{BytePermit, KeyPermit};
use crate::change::watched_uri_bytes;
use crate::change::{ChangeSubscription, ServerChange, SubscriptionFilter};
use crate::party::ClientParty;
use crate::server_core::ServerCore;
use crate::wire_tap::ObservedClient;

/// A `subscriptions/listen` stream of change notifications.
pub(crate) struct SubscriptionStream {
    core: Arc<ServerCore>,
    /// The client, for an observer.
    client: Option<ObservedClient>,
    id: RequestId,
    filter: SubscriptionFilter,
    subscription: ChangeSubscription,
    _permit: KeyPermit<ClientParty>,
    _uri_permit: BytePermit,
}

impl SubscriptionStream {
    /// Reads the requested filter, and leaves out what the server does not offer.
    ///
    /// See [Notification Filter](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter).
    pub(super) fn filter(core: &ServerCore, params: &Params) -> Result<SubscriptionFilter, Refusal> {
        let requested = read_filter(params.get("notifications"))?;
        let offered = core.handler.capabilities();
        Ok(SubscriptionFilter {
            subscriber: None,
            shown_lists: None,
            tools: requested.tools && offered.tools.is_some(),
            prompts: requested.prompts && offered.prompts.is_some(),
            resources: requested.resources && offered.resources.is_some(),
            uris: if offered.resources.is_some() { requested.uris } else { BTreeSet::new() },
        })
    }

    pub(super) fn begin(
        core: &Arc<ServerCore>,
        id: &RequestId,
        filter: SubscriptionFilter,
        party: &ClientParty,
    ) -> Result<Self, Refusal> {
        if core.shutdown.is_draining() {
            return Err(Refusal::SHUTTING_DOWN);
        }
        // Over HTTP each has a connection of its own.
        let max_per_host = core.limits.connections_per_address;
        let quota_permit =
            core.subscription_quota.acquire_for_party(party, max_per_host).ok_or(Refusal::TOO_MANY)?;
        let mut permit = core.watched_uris.permit_for(party);
        if !filter.uris.iter().all(|uri| permit.grow(watched_uri_bytes(uri))) {
            return Err(Refusal::TOO_MANY.with_message("too many resources are watched; try again later"));
        }
        // The subscription begins here and is first read after the acknowledgement was sent, so no change can precede
        // it.
        let subscription = core.handler.subscribe(filter.clone());
        Ok(Self {
            core: core.clone(),
            client: None,
            id: id.to_owned_buffer(),
            filter,
            subscription,
            _permit: quota_permit,
            _uri_permit: permit,
        })
    }

    /// Sets the client for an observer.
    pub(super) fn observed_as(mut self, client: ObservedClient) -> Self {
        self.client = Some(client);
        self
    }

    fn observe_sent(&self, message: String) -> String {
        if let Some(client) = &self.client {
            self.core.observe_sent(|| client.clone(), &message);
        }
        message
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the first message of the stream, which lists the accepted subscriptions.
    ///
    /// See [Acknowledgment](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#acknowledgment).
    pub(crate) fn acknowledgement(&self) -> String {
        self.observe_sent(emit::notification("notifications/subscriptions/acknowledged", |writer| {
            writer.open_object();
            self.write_meta(writer);
            writer.plain_key("notifications");
            self.write_filter(writer);
            writer.close_object();
        }))
    }

    /// Polls for the next message.
    pub(crate) fn poll_message(&self, cx: &mut TaskContext<'_>) -> Poll<String> {
        self.subscription.poll_change(cx).map(|change| self.observe_sent(self.render(&change)))
    }

    /// Returns the response with which the server ends the stream.
    ///
    /// See [Graceful Closure](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#graceful-closure).
    pub(crate) fn final_response(&self) -> String {
        let mut about = JsonObject::new();
        about.set(meta::SUBSCRIPTION_ID, self.id.to_raw());
        let mut members = JsonObject::new();
        members.set("_meta", about.to_raw());
        self.observe_sent(self.core.result(&self.id, &ServerResult::Object(members), Revision::NEWEST))
    }

    /// Returns the message that follows the response on a channel, for clients that only take this for the end.
    pub(crate) fn cancellation(&self) -> String {
        emit::notification("notifications/cancelled", |writer| {
            writer.open_object();
            writer.member("requestId", &self.id.to_raw());
            writer.close_object();
        })
    }

    fn render(&self, change: &ServerChange) -> String {
        emit::notification(change.method(), |writer| {
            writer.open_object();
            self.write_meta(writer);
            if let ServerChange::ResourceUpdated(uri) = change {
                writer.plain_key("uri");
                writer.string(uri);
            }
            writer.close_object();
        })
    }

    /// Writes the `_meta` that names the listen request.
    ///
    /// See [Receiving Notifications](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#receiving-notifications).
    fn write_meta(&self, writer: &mut JsonWriter) {
        writer.plain_key("_meta");
        writer.open_object();
        writer.member(meta::SUBSCRIPTION_ID, &self.id.to_raw());
        writer.close_object();
    }

    fn write_filter(&self, writer: &mut JsonWriter) {
        writer.open_object();
        for (wanted, name) in [
            (self.filter.tools, "toolsListChanged"),
            (self.filter.prompts, "promptsListChanged"),
            (self.filter.resources, "resourcesListChanged"),
        ] {
            if wanted {
                writer.member(name, &RawJson::TRUE);
            }
        }
        if !self.filter.uris.is_empty() {
            writer.plain_key("resourceSubscriptions");
            writer.open_array();
            self.filter.uris.iter().for_each(|uri| writer.string(uri));
            writer.close_array();
        }
        writer.close_object();
    }
}

fn read_filter(raw: Option<&RawJson>) -> Result<SubscriptionFilter, Refusal> {
    let malformed = |what: &str| Refusal::INVALID_PARAMS.with_message(format!("`notifications` {what}"));
    let members =
        raw.ok_or_else(|| malformed("is missing"))?.members().map_err(|_| malformed("must be an object"))?;
    let wants = |name: &str| members.get(name).is_some_and(|value| *value == RawJson::TRUE);
    let uris: BTreeSet<String> = match members.get("resourceSubscriptions") {
        None => BTreeSet::new(),
        Some(list) => {
            list.decode().map_err(|_| malformed("has `resourceSubscriptions` that are not strings"))?
        }
    };
    let filter = SubscriptionFilter {
        tools: wants("toolsListChanged"),
        prompts: wants("promptsListChanged"),
        resources: wants("resourcesListChanged"),
        uris,
        ..SubscriptionFilter::default()
    };
    if filter.is_too_large() { Err(malformed("names too many resources")) } else { Ok(filter) }
}
