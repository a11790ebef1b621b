//! What goes wrong during a run, one thing after the other.

use std::time::Duration;

use super::bed::ReplicaBed;
use crate::TaskResult;

/// How long Redis is away or slow at a time.
const OUTAGE: Duration = Duration::from_secs(3);

/// How long a replica may take to end in order.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BedFault {
    KillReplica,
    ReplaceReplica,
    StopRedis,
    PauseRedis,
    SlowRedis,
    RestartRedis,
}

/// Every second fault is the end of a replica.
const SCHEDULE: [BedFault; 10] = [
    BedFault::KillReplica,
    BedFault::StopRedis,
    BedFault::KillReplica,
    BedFault::RestartRedis,
    BedFault::KillReplica,
    BedFault::SlowRedis,
    BedFault::KillReplica,
    BedFault::PauseRedis,
    BedFault::KillReplica,
    BedFault::ReplaceReplica,
];

impl BedFault {
    /// Returns the fault with a number.
    pub(super) fn at(number: usize) -> Self {
        SCHEDULE.get(number % SCHEDULE.len()).copied().unwrap_or(Self::KillReplica)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KillReplica => "replica killed",
            Self::ReplaceReplica => "replica drained and replaced",
            Self::StopRedis => "Redis stopped for 3 s",
            Self::PauseRedis => "Redis paused for 3 s",
            Self::SlowRedis => "Redis slowed for 3 s",
            Self::RestartRedis => "Redis killed and restarted",
        }
    }

    /// Makes it happen, and waits until it is over.
    pub(super) fn inject(self, number: usize, bed: &mut ReplicaBed) -> TaskResult {
        match self {
            Self::KillReplica => bed.kill_replica(number / 2),
            Self::ReplaceReplica => bed.replace_replica(number, DRAIN_LIMIT),
            Self::StopRedis => bed.redis().stop_for(OUTAGE),
            Self::PauseRedis => bed.redis().pause_for(OUTAGE),
            Self::SlowRedis => bed.redis().slow_for(OUTAGE),
            Self::RestartRedis => bed.redis().restart(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_second_fault_kills_a_replica_and_each_replica_has_its_turn() {
        let kills: Vec<usize> = (0..12).filter(|at| BedFault::at(*at) == BedFault::KillReplica).collect();
        assert_eq!(kills, [0, 2, 4, 6, 8, 10]);
        let replicas: BTreeSet<usize> = kills.iter().map(|at| at / 2 % 3).collect();
        assert_eq!(replicas.len(), 3);
        assert_eq!((0..10).map(BedFault::at).collect::<BTreeSet<_>>().len(), 6);
    }
}
