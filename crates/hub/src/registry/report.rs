use std::collections::HashSet;

use trunkline_server::UpstreamItem;

use crate::names::{ItemKind, NameCollision};

/// The most collisions of one snapshot that are logged each in a line of its own.
const MAX_LOGGED_COLLISIONS: usize = 5;

/// Logs the collisions that the previous snapshot did not have, and counts the items that are left out or
/// renamed because of them.
pub(crate) fn log_collisions(now: &[NameCollision], before: &[NameCollision]) {
    let known: HashSet<&NameCollision> = before.iter().collect();
    let fresh: Vec<&NameCollision> = now.iter().filter(|collision| !known.contains(collision)).collect();
    for collision in fresh.iter().take(MAX_LOGGED_COLLISIONS) {
        tracing::warn!("{collision}");
    }
    if fresh.len() > MAX_LOGGED_COLLISIONS {
        tracing::warn!(count = fresh.len() - MAX_LOGGED_COLLISIONS, "more name and URI collisions");
    }
    for collision in fresh {
        match collision.kind {
            // The first claimant is the owner.
            ItemKind::Resource | ItemKind::Template => {
                UpstreamItem::Shadowed.count(collision.owners.len().saturating_sub(1));
            }
            ItemKind::Tool | ItemKind::Prompt => UpstreamItem::NameClash.count(collision.owners.len()),
        }
    }
}
