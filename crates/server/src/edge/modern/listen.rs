use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use trunkline_protocol::codec::Reply;
use trunkline_protocol::{Id, Members, Params, Raw, Refusal, Revision, Writer, emit, meta};

use trunkline_session::Principal;

use crate::change::{Change, Filter, Subscription};
use crate::core::Core;
use crate::tally::Share;
use crate::watched::WatchedRoom;

/// A standing stream of changes.
pub(crate) struct Listen {
    core: Arc<Core>,
    id: Id,
    filter: Filter,
    subscription: Subscription,
    _share: Share,
    _room: WatchedRoom,
}

impl Listen {
    /// Reads what is asked for, and leaves out what is not offered.
    pub(super) fn filter(core: &Core, params: &Params) -> Result<Filter, Refusal> {
        let asked = read_filter(params.get("notifications"))?;
        let offered = core.handler.capabilities();
        Ok(Filter {
            listener: None,
            shown: None,
            tools: asked.tools && offered.tools.is_some(),
            prompts: asked.prompts && offered.prompts.is_some(),
            resources: asked.resources && offered.resources.is_some(),
            uris: if offered.resources.is_some() { asked.uris } else { BTreeSet::new() },
        })
    }

    pub(super) fn begin(
        core: &Arc<Core>,
        id: &Id,
        filter: Filter,
        principal: &Principal,
    ) -> Result<Self, Refusal> {
        if core.shutdown.is_draining() {
            return Err(Refusal::SHUTTING_DOWN);
        }
        let share = core.listens.take(principal).ok_or(Refusal::TOO_MANY)?;
        let mut room = core.watched.room();
        if !filter.uris.iter().all(|uri| room.take(uri)) {
            return Err(Refusal::TOO_MANY.because("too many resources are watched; try again later"));
        }
        // The watch begins here and is first read after the acknowledgement was sent, so nothing can slip ahead of it.
        let subscription = core.handler.watch(filter.clone());
        Ok(Self { core: core.clone(), id: id.detached(), filter, subscription, _share: share, _room: room })
    }

    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Returns the first message of the stream, which says what will be told.
    pub(crate) fn acknowledgement(&self) -> String {
        emit::notification("notifications/subscriptions/acknowledged", |writer| {
            writer.open_object();
            self.write_meta(writer);
            writer.plain_key("notifications");
            self.write_filter(writer);
            writer.close_object();
        })
    }

    /// Polls for the next message.
    pub(crate) fn poll_message(&self, cx: &mut TaskContext<'_>) -> Poll<String> {
        self.subscription.poll_change(cx).map(|change| self.render(&change))
    }

    /// Returns the answer with which the server ends the stream.
    pub(crate) fn ending(&self) -> String {
        let mut about = Members::new();
        about.set(meta::SUBSCRIPTION_ID, self.id.to_raw());
        let mut members = Members::new();
        members.set("_meta", about.to_raw());
        self.core.result(&self.id, &Reply::Object(members), Revision::NEWEST)
    }

    /// Returns what a channel says after the ending, for clients that take only this for one.
    pub(crate) fn cancellation(&self) -> String {
        emit::notification("notifications/cancelled", |writer| {
            writer.open_object();
            writer.member("requestId", &self.id.to_raw());
            writer.close_object();
        })
    }

    fn render(&self, change: &Change) -> String {
        emit::notification(change.method(), |writer| {
            writer.open_object();
            self.write_meta(writer);
            if let Change::Updated(uri) = change {
                writer.plain_key("uri");
                writer.string(uri);
            }
            writer.close_object();
        })
    }

    fn write_meta(&self, writer: &mut Writer) {
        writer.plain_key("_meta");
        writer.open_object();
        writer.member(meta::SUBSCRIPTION_ID, &self.id.to_raw());
        writer.close_object();
    }

    fn write_filter(&self, writer: &mut Writer) {
        writer.open_object();
        for (wanted, name) in [
            (self.filter.tools, "toolsListChanged"),
            (self.filter.prompts, "promptsListChanged"),
            (self.filter.resources, "resourcesListChanged"),
        ] {
            if wanted {
                writer.member(name, &Raw::TRUE);
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

fn read_filter(raw: Option<&Raw>) -> Result<Filter, Refusal> {
    let malformed = |what: &str| Refusal::INVALID_PARAMS.because(format!("`notifications` {what}"));
    let members =
        raw.ok_or_else(|| malformed("is missing"))?.members().map_err(|_| malformed("must be an object"))?;
    let wants = |name: &str| members.get(name).is_some_and(|value| *value == Raw::TRUE);
    let uris: BTreeSet<String> = match members.get("resourceSubscriptions") {
        None => BTreeSet::new(),
        Some(list) => {
            list.decode().map_err(|_| malformed("has `resourceSubscriptions` that are not strings"))?
        }
    };
    let filter = Filter {
        tools: wants("toolsListChanged"),
        prompts: wants("promptsListChanged"),
        resources: wants("resourcesListChanged"),
        uris,
        ..Filter::default()
    };
    if filter.is_too_large() { Err(malformed("names too many resources")) } else { Ok(filter) }
}
