use serde::Serialize;
use trunkline_config::ServerName;

/// The calls of the servers in the last hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFigureReport {
    /// The slot that is not over yet. Slots are numbered from the start of the hub.
    pub slot: u32,
    /// The seconds of a slot.
    pub slot_seconds: u32,
    /// All servers together, with those that were removed.
    pub all: ServerFigures,
    /// Each server, by name.
    pub servers: Vec<(ServerName, ServerFigures)>,
}

/// The calls of a server. What happened in the slot that is not over counts when it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerFigures {
    /// The calls since the start of the hub that were not cancelled.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// The bytes of all results.
    pub result_bytes: u64,
    /// The last five minutes.
    pub recent: RecentFigures,
    /// The slots of the last hour with a call, the oldest first.
    pub points: Vec<FigurePoint>,
}

/// The calls of the last five minutes. Times have an error of at most a sixteenth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecentFigures {
    /// The seconds, if the hub has not run for five minutes yet.
    pub seconds: u32,
    /// The calls that were not cancelled.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// Half of them took no longer.
    pub p50_micros: u64,
    /// 95 of a hundred took no longer.
    pub p95_micros: u64,
    /// 99 of a hundred took no longer.
    pub p99_micros: u64,
}

/// The calls of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FigurePoint {
    /// Its number.
    pub slot: u32,
    /// The calls that were not cancelled.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// The calls that were cancelled.
    pub cancelled: u64,
    /// Half of them took no longer.
    pub p50_micros: u64,
    /// 95 of a hundred took no longer.
    pub p95_micros: u64,
    /// 99 of a hundred took no longer.
    pub p99_micros: u64,
    /// The bytes of the results.
    pub result_bytes: u64,
}
