use std::collections::HashSet;

use trunkline_server::UpstreamItem;

use crate::names::{Collision, Kind};

/// The most collisions of one snapshot that are logged each in a line of its own.
const MOST_LOGGED: usize = 5;

/// Logs the collisions of a snapshot that the one before did not have, and counts the items that are left out because of them.
pub(crate) fn log_collisions(now: &[Collision], before: &[Collision]) {
    let known: HashSet<&Collision> = before.iter().collect();
    let fresh: Vec<&Collision> = now.iter().filter(|collision| !known.contains(collision)).collect();
    for collision in fresh.iter().take(MOST_LOGGED) {
        tracing::warn!("{collision}");
    }
    if fresh.len() > MOST_LOGGED {
        tracing::warn!(
            count = fresh.len() - MOST_LOGGED,
            "further names and addresses are claimed by several servers"
        );
    }
    let shadowed = |collision: &&Collision| matches!(collision.kind, Kind::Resource | Kind::Template);
    let left_out =
        fresh.into_iter().filter(shadowed).map(|collision| collision.owners.len().saturating_sub(1));
    UpstreamItem::Shadowed.count(left_out.sum());
}
