//! The limits of this crate, each of them in `docs/limits.md`.

/// The most bytes that a configuration of ours may have: 1 MiB.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The most bytes that a client's own file may have: 64 MiB. Claude Code keeps its history in the same file.
pub const MAX_CLIENT_BYTES: u64 = 64 << 20;

/// The most bytes that the variables of one configuration may become: 8 MiB.
pub(crate) const MAX_EXPANDED_BYTES: usize = 8 << 20;

/// The most servers that one configuration may have.
pub const MAX_SERVERS: usize = 1024;

/// The most access rules that one configuration may have.
pub const MAX_ACCESS_RULES: usize = 1024;

/// The most patterns in one list of an access rule.
pub const MAX_ACCESS_PATTERNS: usize = 256;

/// The most bytes of one pattern of an access rule.
pub const MAX_ACCESS_PATTERN_BYTES: usize = 1024;

/// The most problems that are reported for one configuration; a file full of errors usually has one cause.
pub(crate) const MAX_PROBLEMS: usize = 20;
