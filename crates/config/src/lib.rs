//! The configuration of trunkline: `trunkline.toml`, and the `mcp.json` of every client.
//!
//! [`ConfigFile`] is a file that was read. It gives one [`ServerConfig`] for each server, whatever dialect the file is in,
//! and the tables of other crates as [`ConfigSection`]s. Every mistake is a [`ConfigProblem`] with its file, line, column and key.
//!
//! ```
//! use trunkline_config::{ConfigFile, ConfigVariables, ServerLocation};
//!
//! let text = r#"
//!     [servers.github]
//!     command = "npx"
//!     args = ["-y", "github-server"]
//!     env = { TOKEN = "${TOKEN}" }
//! "#;
//! let file = ConfigFile::parse("trunkline.toml", text, ConfigVariables::fixed([("TOKEN", "secret")]))?;
//! let github = file.server("github")?;
//! let ServerLocation::Program(program) = &github.location else { panic!("it has a command") };
//! assert_eq!(program.command_line(), "npx -y github-server");
//! assert!(!format!("{github:?}").contains("secret"));
//! # Ok::<(), trunkline_config::ConfigError>(())
//! ```
//!
//! # Invariants
//!
//! - No text causes a panic: `every_target_survives_its_corpus`.
//! - An error message never contains a value of the file: `config_errors_never_contain_values`.
//! - Nesting beyond a limit is rejected: `deeply_nested_config_is_rejected_without_recursion`.
//! - Every error has a source position: `toml_errors_have_a_position_and_a_suggestion`.
#![forbid(unsafe_code)]

mod access;
mod call_rate;
mod de;
mod diff;
mod duration;
mod edit;
mod file;
pub mod find;
mod limits;
mod node;
mod problem;
mod schema;
mod secrets;
mod section;
mod server;
mod source_position;
mod suggestion;
mod syntax;
mod text;
mod variables;

pub use self::access::{AccessAction, AccessRule, PatternList};
pub use self::call_rate::{CallLimits, CallRate};
pub use self::diff::{ChangeEffect, ChangedServer, ConfigDiff, diff};
pub use self::duration::ConfigDuration;
pub use self::edit::{BackupMode, ConfigEditor, EditError, SaveOutcome, replace_file};
pub use self::file::{ConfigFile, InvalidServer, SECTIONS};
pub use self::limits::{
    MAX_ACCESS_PATTERN_BYTES, MAX_ACCESS_PATTERNS, MAX_ACCESS_RULES, MAX_CLIENT_BYTES, MAX_CONFIG_BYTES,
    MAX_SERVERS,
};
pub use self::problem::{ConfigError, ConfigProblem};
pub use self::schema::schema;
pub use self::section::ConfigSection;
pub use self::server::{
    AuthKind, ConnectionSharing, DpopUse, LocalProgram, NamePattern, ProtocolEra, ProtocolRevision,
    RemoteEndpoint, RemoteTransport, ServerAuth, ServerConfig, ServerLocation, ServerName, ServerNameError,
    StartMode, ToolRules,
};
pub use self::source_position::SourcePosition;
pub use self::syntax::ConfigFormat;
pub use self::text::{ConfigText, VerbatimText};
pub use self::variables::ConfigVariables;
