//! One dialect per revision, and results written in it.
//!
//! Inside, every concept has one superset type (see [`crate::model`]). Writing consults the flags of a [`Dialect`], never
//! the revision itself, so the features of a revision are a row of a table and not a branch in feature code.

mod conform;
mod dialect;
mod output_schema;
mod r2024_11_05;
mod r2025_03_26;
mod r2025_06_18;
mod r2025_11_25;
mod r2026_07_28;
mod raw_result;
mod relayed_result;
mod result_layout;
mod server_result;

pub use self::dialect::Dialect;
pub(crate) use self::output_schema::narrow_output_schema;
pub use self::raw_result::RawResult;
pub use self::relayed_result::RelayedResult;
pub use self::server_result::{InputRequiredResult, ListPageResult, ServerResult, write_result};
