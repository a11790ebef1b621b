//! What is wrong with a server, and what only could be better.

mod finding;
mod item_checks;
mod lists;
mod reachability;
mod report;
mod schema_checks;
mod stray_output;

pub(crate) use self::lists::{check_lists, measure_latency};
pub(crate) use self::reachability::check_reachability;
pub(crate) use self::report::DoctorReport;
pub(crate) use self::stray_output::StrayOutput;
