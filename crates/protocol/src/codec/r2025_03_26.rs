//! 2025-03-26: tool annotations, audio, and progress messages.
//!
//! See [Key Changes](https://modelcontextprotocol.io/specification/2025-03-26/changelog).

use super::{Dialect, r2024_11_05};
use crate::revision::Revision;

pub(super) const DIALECT: Dialect = Dialect {
    revision: Revision::V2025_03_26,
    tool_annotations: true,
    audio: true,
    progress_message: true,
    completions_flag: true,
    ..r2024_11_05::DIALECT
};
