//! Watching resources at a server, for each who wants to be told over connections that are theirs.
//!
//! What one principal watches is nothing to another: neither is it asked for over the other's connection, nor does it take
//! anything of what the other may watch, nor is the other told of it.

mod desired;
mod listeners;
mod subscription_task;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;
use trunkline_client::is_sub_resource;
use trunkline_config::ConnectionSharing;
use trunkline_server::ChangeSubscriber;

use self::desired::DesiredSubscriptions;
use super::connection::ConnectionScope;
use super::{Upstream, UpstreamEvent};
use crate::scope::SharingScope;

/// What is watched at one server, by over whose connections.
#[derive(Debug, Default)]
pub(super) struct UpstreamSubscriptions(Mutex<HashMap<ConnectionScope, Arc<DesiredSubscriptions>>>);

impl UpstreamSubscriptions {
    fn get(&self, who: &ConnectionScope) -> Option<Arc<DesiredSubscriptions>> {
        self.lock().get(who).cloned()
    }

    fn all(&self) -> Vec<(ConnectionScope, Arc<DesiredSubscriptions>)> {
        self.lock().iter().map(|(who, wishes)| (who.clone(), wishes.clone())).collect()
    }

    /// Forgets whoever wants nothing any more; reports whether that is so.
    fn remove_if_empty(&self, who: &ConnectionScope) -> bool {
        let mut all = self.lock();
        let is_idle = all.get(who).is_none_or(|wishes| wishes.is_empty());
        if is_idle {
            all.remove(who);
        }
        is_idle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionScope, Arc<DesiredSubscriptions>>> {
        self.0.lock()
    }
}

impl Upstream {
    /// Returns over whose connections somebody is told of changes.
    fn connection_scope(&self, listener: &ChangeSubscriber) -> ConnectionScope {
        match (self.config.load().sharing, listener.session) {
            (ConnectionSharing::Session, Some(session)) => ConnectionScope::Session(session),
            _ => match SharingScope::of_listener(listener, self.options.anonymous) {
                SharingScope::Principal(principal) => ConnectionScope::Principal(principal),
                SharingScope::Client(client) => ConnectionScope::Session(client),
            },
        }
    }

    /// Begins to watch resources for somebody, and returns those of which the server tells.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        listener: &ChangeSubscriber,
        uris: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let (wishes, number, added) = self.add_desired(listener, &uris);
        let mut outcome = wishes.watch_subscribed();
        let answered = outcome.wait_for(|outcome| outcome.generation >= number);
        match timeout(self.options.limits.subscribe_timeout, answered).await {
            Ok(Ok(outcome)) => {
                let refused: Vec<_> = added.into_iter().filter(|uri| !outcome.uris.contains(uri)).collect();
                let told = uris.intersection(&outcome.uris).cloned().collect();
                drop(outcome);
                if !refused.is_empty() {
                    wishes.remove(&refused);
                    self.notify_changed();
                }
                told
            }
            // Somebody else may still wait for the same; what nobody wants in the end is not watched for long.
            _ => BTreeSet::new(),
        }
    }

    /// Returns the resources that are watched for somebody, or are to be.
    pub(crate) fn subscribed_uris(&self, listener: &ChangeSubscriber) -> BTreeSet<String> {
        self.subscriptions
            .get(&self.connection_scope(listener))
            .map(|wishes| wishes.uris())
            .unwrap_or_default()
    }

    /// Watches resources again that somebody was told of by the one before; they may have changed in between.
    pub(crate) fn resubscribe(self: &Arc<Self>, listener: &ChangeSubscriber, uris: &BTreeSet<String>) {
        if uris.is_subset(&self.subscribed_uris(listener)) {
            return;
        }
        let (wishes, _, added) = self.add_desired(listener, uris);
        wishes.note_missed(added);
    }

    fn add_desired(
        self: &Arc<Self>,
        listener: &ChangeSubscriber,
        uris: &BTreeSet<String>,
    ) -> (Arc<DesiredSubscriptions>, u64, Vec<String>) {
        let who = self.connection_scope(listener);
        let (wishes, number, added) = {
            // Held while the wish is noted, so that nobody forgets it in between.
            let mut all = self.subscriptions.lock();
            let is_known = all.contains_key(&who);
            let wishes = all.entry(who.clone()).or_default().clone();
            let (number, added) = wishes.add(uris);
            if !is_known {
                subscription_task::spawn(self, who, &wishes);
            }
            (wishes, number, added)
        };
        self.notify_changed();
        (wishes, number, added)
    }

    /// Watches only what is still wanted, a while after it no longer is; returns when to look again.
    pub(crate) fn prune_subscriptions(
        &self,
        wanted: &[(&ChangeSubscriber, BTreeSet<String>)],
    ) -> Option<Duration> {
        let lingers = self.options.limits.unsubscribe_delay;
        let tended = self.subscriptions.all().into_iter().filter_map(|(who, wishes)| {
            let theirs = wanted.iter().filter(|(listener, _)| self.connection_scope(listener) == who);
            let theirs = theirs.flat_map(|(_, uris)| uris).cloned().collect();
            let (over, next) = wishes.expired(&theirs, lingers);
            if !over.is_empty() {
                wishes.remove(&over);
                self.notify_changed();
            }
            next
        });
        tended.min()
    }

    /// Tells of what may have changed, as far as it is watched: a server that is switched off has nothing to say until it is
    /// back.
    fn publish_missed(&self, who: &ConnectionScope, wishes: &DesiredSubscriptions, told: &BTreeSet<String>) {
        if self.is_offered() {
            wishes
                .take_missed(told)
                .into_iter()
                .for_each(|uri| (self.on_event)(UpstreamEvent::ResourceUpdated(uri, who.clone())));
        }
    }

    fn publish_updated(
        &self,
        who: &ConnectionScope,
        wishes: &DesiredSubscriptions,
        uri: String,
        told: &BTreeSet<String>,
    ) {
        if self.is_offered() {
            (self.on_event)(UpstreamEvent::ResourceUpdated(uri, who.clone()));
        } else {
            // Parts of a watched resource may be without number.
            wishes.note_missed(told.iter().filter(|watched| is_sub_resource(&uri, watched)).cloned());
        }
    }
}
