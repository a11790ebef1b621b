//! Watching resources at a server, for each who wants to be told over connections that are theirs.
//!
//! What one principal watches is nothing to another: neither is it asked for over the other's connection, nor does it take
//! anything of what the other may watch, nor is the other told of it.

mod ears;
mod tend;
mod wishes;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;
use trunkline_client::is_part_of;
use trunkline_config::Share;
use trunkline_server::Listener;

use self::wishes::Wishes;
use super::connection::Who;
use super::{Told, Upstream};
use crate::scope::SharingScope;

/// What is watched at one server, by over whose connections.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<HashMap<Who, Arc<Wishes>>>);

impl Watches {
    fn of(&self, who: &Who) -> Option<Arc<Wishes>> {
        self.lock().get(who).cloned()
    }

    fn all(&self) -> Vec<(Who, Arc<Wishes>)> {
        self.lock().iter().map(|(who, wishes)| (who.clone(), wishes.clone())).collect()
    }

    /// Forgets whoever wants nothing any more; reports whether that is so.
    fn forget(&self, who: &Who) -> bool {
        let mut all = self.lock();
        let is_idle = all.get(who).is_none_or(|wishes| wishes.is_empty());
        if is_idle {
            all.remove(who);
        }
        is_idle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Who, Arc<Wishes>>> {
        self.0.lock()
    }
}

impl Upstream {
    /// Returns over whose connections somebody is told of changes.
    fn whose(&self, listener: &Listener) -> Who {
        match (self.config.load().share, listener.session) {
            (Share::Session, Some(session)) => Who::Session(session),
            _ => match SharingScope::of_listener(listener, self.options.anonymous) {
                SharingScope::Principal(principal) => Who::Principal(principal),
                SharingScope::Client(client) => Who::Session(client),
            },
        }
    }

    /// Begins to watch resources for somebody, and returns those of which the server tells.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        listener: &Listener,
        uris: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let (wishes, number, added) = self.wish(listener, &uris);
        let mut outcome = wishes.outcome();
        let answered = outcome.wait_for(|outcome| outcome.number >= number);
        match timeout(self.options.limits.watch_within, answered).await {
            Ok(Ok(outcome)) => {
                let refused: Vec<_> = added.into_iter().filter(|uri| !outcome.uris.contains(uri)).collect();
                let told = uris.intersection(&outcome.uris).cloned().collect();
                drop(outcome);
                if !refused.is_empty() {
                    wishes.give_up(&refused);
                    self.beat();
                }
                told
            }
            // Somebody else may still wait for the same; what nobody wants in the end is not watched for long.
            _ => BTreeSet::new(),
        }
    }

    /// Returns the resources that are watched for somebody, or are to be.
    pub(crate) fn watched(&self, listener: &Listener) -> BTreeSet<String> {
        self.watches.of(&self.whose(listener)).map(|wishes| wishes.uris()).unwrap_or_default()
    }

    /// Watches resources again that somebody was told of by the one before; they may have changed in between.
    pub(crate) fn take_up(self: &Arc<Self>, listener: &Listener, uris: &BTreeSet<String>) {
        if uris.is_subset(&self.watched(listener)) {
            return;
        }
        let (wishes, _, added) = self.wish(listener, uris);
        wishes.miss(added);
    }

    fn wish(
        self: &Arc<Self>,
        listener: &Listener,
        uris: &BTreeSet<String>,
    ) -> (Arc<Wishes>, u64, Vec<String>) {
        let who = self.whose(listener);
        let (wishes, number, added) = {
            // Held while the wish is noted, so that nobody forgets it in between.
            let mut all = self.watches.lock();
            let is_known = all.contains_key(&who);
            let wishes = all.entry(who.clone()).or_default().clone();
            let (number, added) = wishes.wish(uris);
            if !is_known {
                tend::spawn(self, who, &wishes);
            }
            (wishes, number, added)
        };
        self.beat();
        (wishes, number, added)
    }

    /// Watches only what is still wanted, a while after it no longer is; returns when to look again.
    pub(crate) fn still_wanted(&self, wanted: &[(&Listener, BTreeSet<String>)]) -> Option<Duration> {
        let lingers = self.options.limits.watch_lingers;
        let tended = self.watches.all().into_iter().filter_map(|(who, wishes)| {
            let theirs = wanted.iter().filter(|(listener, _)| self.whose(listener) == who);
            let theirs = theirs.flat_map(|(_, uris)| uris).cloned().collect();
            let (over, next) = wishes.expired(&theirs, lingers);
            if !over.is_empty() {
                wishes.give_up(&over);
                self.beat();
            }
            next
        });
        tended.min()
    }

    /// Tells of what may have changed, as far as it is watched: a server that is switched off has nothing to say until it is
    /// back.
    fn tell_missed(&self, who: &Who, wishes: &Wishes, told: &BTreeSet<String>) {
        if self.is_offered() {
            wishes.take_missed(told).into_iter().for_each(|uri| (self.tell)(Told::Updated(uri, who.clone())));
        }
    }

    fn tell_updated(&self, who: &Who, wishes: &Wishes, uri: String, told: &BTreeSet<String>) {
        if self.is_offered() {
            (self.tell)(Told::Updated(uri, who.clone()));
        } else {
            // Parts of a watched resource may be without number.
            wishes.miss(told.iter().filter(|watched| is_part_of(&uri, watched)).cloned());
        }
    }
}
