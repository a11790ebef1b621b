//! 2026-07-28: any JSON as structured output; results have a type, the server's identity and cache hints.
//!
//! See [Key Changes](https://modelcontextprotocol.io/specification/2026-07-28/changelog).

use super::{Dialect, r2025_11_25};
use crate::revision::Revision;

pub(super) const DIALECT: Dialect = Dialect {
    revision: Revision::V2026_07_28,
    structured_any: true,
    // Removed: a retry of the call shows whether the user is done.
    elicitation_id: false,
    result_type: true,
    cache_hints: true,
    server_info: true,
    ..r2025_11_25::DIALECT
};
