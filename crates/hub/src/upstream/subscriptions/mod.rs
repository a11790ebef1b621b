//! Resource subscriptions at a server, for each scope over its own connections.
//!
//! Subscriptions of principals are isolated: one principal's subscriptions are never sent over another's connection,
//! never use up another's quota, and never notify another.

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
use super::connection_scope::ConnectionScope;
use super::{Upstream, UpstreamEvent};
use crate::scope::SharingScope;

/// The desired subscriptions at one server, by connection scope.
#[derive(Debug, Default)]
pub(super) struct UpstreamSubscriptions(Mutex<HashMap<ConnectionScope, Arc<DesiredSubscriptions>>>);

impl UpstreamSubscriptions {
    fn get(&self, scope: &ConnectionScope) -> Option<Arc<DesiredSubscriptions>> {
        self.lock().get(scope).cloned()
    }

    fn all(&self) -> Vec<(ConnectionScope, Arc<DesiredSubscriptions>)> {
        self.lock().iter().map(|(scope, desired)| (scope.clone(), desired.clone())).collect()
    }

    /// Removes a scope without desired subscriptions; reports whether it was empty.
    fn remove_if_empty(&self, scope: &ConnectionScope) -> bool {
        let mut all = self.lock();
        let is_idle = all.get(scope).is_none_or(|desired| desired.is_empty());
        if is_idle {
            all.remove(scope);
        }
        is_idle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionScope, Arc<DesiredSubscriptions>>> {
        self.0.lock()
    }
}

impl Upstream {
    /// Returns the scope of the connections for a listener's subscriptions.
    fn connection_scope(&self, listener: &ChangeSubscriber) -> ConnectionScope {
        match (self.config.load().sharing, listener.session) {
            (ConnectionSharing::Session, Some(session)) => ConnectionScope::Session(session),
            _ => match SharingScope::of_listener(listener, self.options.anonymous) {
                SharingScope::Principal(principal) => ConnectionScope::Principal(principal),
                SharingScope::Client(client) => ConnectionScope::Session(client),
            },
        }
    }

    /// Subscribes resources for a listener, and returns those that the server accepts.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        listener: &ChangeSubscriber,
        uris: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let (desired, number, added) = self.add_desired(listener, &uris);
        let mut outcome = desired.watch_subscribed();
        let answered = outcome.wait_for(|outcome| outcome.generation >= number);
        match timeout(self.options.limits.subscribe_timeout, answered).await {
            Ok(Ok(outcome)) => {
                let refused: Vec<_> = added.into_iter().filter(|uri| !outcome.uris.contains(uri)).collect();
                let accepted = uris.intersection(&outcome.uris).cloned().collect();
                drop(outcome);
                if !refused.is_empty() {
                    desired.remove(&refused);
                    self.notify_changed();
                }
                accepted
            }
            // Another listener may still wait for the same URIs; those without a subscriber are removed after the
            // unsubscribe delay.
            _ => BTreeSet::new(),
        }
    }

    /// Returns the resources that are, or are to be, subscribed for a listener.
    pub(crate) fn subscribed_uris(&self, listener: &ChangeSubscriber) -> BTreeSet<String> {
        self.subscriptions
            .get(&self.connection_scope(listener))
            .map(|desired| desired.uris())
            .unwrap_or_default()
    }

    /// Subscribes resources that another upstream owned before; they may have changed in between.
    pub(crate) fn resubscribe(self: &Arc<Self>, listener: &ChangeSubscriber, uris: &BTreeSet<String>) {
        if uris.is_subset(&self.subscribed_uris(listener)) {
            return;
        }
        let (desired, _, added) = self.add_desired(listener, uris);
        desired.note_missed(added);
    }

    fn add_desired(
        self: &Arc<Self>,
        listener: &ChangeSubscriber,
        uris: &BTreeSet<String>,
    ) -> (Arc<DesiredSubscriptions>, u64, Vec<String>) {
        let scope = self.connection_scope(listener);
        let (desired, number, added) = {
            // Held until the URIs are added, so that the entry is not removed in between.
            let mut all = self.subscriptions.lock();
            let is_known = all.contains_key(&scope);
            let desired = all.entry(scope.clone()).or_default().clone();
            let (number, added) = desired.add(uris);
            if !is_known {
                subscription_task::spawn(self, scope, &desired);
            }
            (desired, number, added)
        };
        self.notify_changed();
        (desired, number, added)
    }

    /// Unsubscribes resources without a subscriber after the unsubscribe delay; returns the time until the next
    /// check.
    pub(crate) fn prune_subscriptions(
        &self,
        wanted: &[(&ChangeSubscriber, BTreeSet<String>)],
    ) -> Option<Duration> {
        let delay = self.options.limits.unsubscribe_delay;
        let pruned = self.subscriptions.all().into_iter().filter_map(|(scope, desired)| {
            let theirs = wanted.iter().filter(|(listener, _)| self.connection_scope(listener) == scope);
            let theirs = theirs.flat_map(|(_, uris)| uris).cloned().collect();
            let (over, next) = desired.expired(&theirs, delay);
            if !over.is_empty() {
                desired.remove(&over);
                self.notify_changed();
            }
            next
        });
        pruned.min()
    }

    /// Publishes missed changes of accepted resources. A disabled server publishes nothing until it is enabled again.
    fn publish_missed(
        &self,
        scope: &ConnectionScope,
        desired: &DesiredSubscriptions,
        accepted: &BTreeSet<String>,
    ) {
        if self.is_offered() {
            desired
                .take_missed(accepted)
                .into_iter()
                .for_each(|uri| (self.on_event)(UpstreamEvent::ResourceUpdated(uri, scope.clone())));
        }
    }

    fn publish_updated(
        &self,
        scope: &ConnectionScope,
        desired: &DesiredSubscriptions,
        uri: String,
        accepted: &BTreeSet<String>,
    ) {
        if self.is_offered() {
            (self.on_event)(UpstreamEvent::ResourceUpdated(uri, scope.clone()));
        } else {
            // Only the watched resource is recorded, since its sub-resources may be unlimited in number.
            desired.note_missed(accepted.iter().filter(|watched| is_sub_resource(&uri, watched)).cloned());
        }
    }
}
