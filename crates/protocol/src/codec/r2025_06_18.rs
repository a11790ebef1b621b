//! 2025-06-18: structured output, titles, resource links, `_meta` everywhere, and form elicitation.
//!
//! See [Key Changes](https://modelcontextprotocol.io/specification/2025-06-18/changelog).

use super::{Dialect, r2025_03_26};
use crate::revision::Revision;

pub(super) const DIALECT: Dialect = Dialect {
    revision: Revision::V2025_06_18,
    title: true,
    entity_meta: true,
    last_modified: true,
    resource_link: true,
    completion_context: true,
    // Objects only: a schema or value of another type is wrapped in one.
    structured: true,
    // Not yet named by the specification, but capabilities are an open set from here on.
    extensions: true,
    // Forms only, with plain choices and boolean defaults.
    elicitation: true,
    ..r2025_03_26::DIALECT
};
