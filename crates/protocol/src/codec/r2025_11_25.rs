//! 2025-11-25: icons, URL elicitation, richer forms, and tools in sampling.
//!
//! See [Key Changes](https://modelcontextprotocol.io/specification/2025-11-25/changelog).

use super::{Dialect, r2025_06_18};
use crate::revision::Revision;

pub(super) const DIALECT: Dialect = Dialect {
    revision: Revision::V2025_11_25,
    icons: true,
    implementation_details: true,
    elicitation_modes: true,
    // Only this revision announces the completion of a URL elicitation, and so only it needs a name for one.
    elicitation_id: true,
    rich_forms: true,
    sampling_tools: true,
    ..r2025_06_18::DIALECT
};
