//! The configuration of trunkline: `trunkline.toml`, and every `mcp.json` as it is.
//!
//! [`ConfigFile`] is a file that was read. It gives one [`ServerConfig`] for each server, whatever dialect the file is in,
//! and the tables of other rooms as [`Section`]s. Every mistake is a [`Problem`] with its file, line, column and key.
//!
//! ```
//! use trunkline_config::{ConfigFile, Reach, Variables};
//!
//! let text = r#"
//!     [servers.github]
//!     command = "npx"
//!     args = ["-y", "github-server"]
//!     env = { TOKEN = "${TOKEN}" }
//! "#;
//! let file = ConfigFile::parse("trunkline.toml", text, Variables::given([("TOKEN", "secret")]))?;
//! let github = file.server("github")?;
//! let Reach::Program(program) = &github.reach else { panic!("it has a command") };
//! assert_eq!(program.command_line(), "npx -y github-server");
//! assert!(!format!("{github:?}").contains("secret"));
//! # Ok::<(), trunkline_config::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod de;
mod diff;
mod duration;
mod edit;
mod file;
pub mod find;
mod limits;
mod near;
mod node;
mod place;
mod problem;
mod schema;
mod secrets;
mod section;
mod server;
mod syntax;
mod text;
mod variables;

pub use self::diff::{Changed, Difference, Effect, difference};
pub use self::duration::Length;
pub use self::edit::{Backup, EditError, Editor, Saved, replace_file};
pub use self::file::{ConfigFile, SECTIONS};
pub use self::limits::{MOST_CLIENT_BYTES, MOST_CONFIG_BYTES, MOST_SERVERS};
pub use self::place::Place;
pub use self::problem::{ConfigError, Problem};
pub use self::schema::schema;
pub use self::section::Section;
pub use self::server::{
    Endpoint, Pattern, Program, ProtocolEra, ProtocolRevision, Reach, ServerConfig, ServerName,
    ServerNameError, Share, Start, ToolRules, Wire,
};
pub use self::syntax::Format;
pub use self::text::{Text, Verbatim};
pub use self::variables::Variables;
