//! What is wrong with a server, and what only could be better.

mod finding;
mod item_checks;
mod lists;
mod login_steps;
mod reachability;
mod report;
mod schema_checks;
mod stray_output;

pub(crate) use self::lists::{check_lists, measure_latency};
pub(crate) use self::login_steps::{check_login_steps, describe_stored_login};
pub(crate) use self::reachability::check_reachability;
pub(crate) use self::report::DoctorReport;
pub(crate) use self::stray_output::StrayOutput;
