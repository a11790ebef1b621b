//! Aggregates many MCP servers behind one endpoint, and bridges the two protocol eras.
//!
//! A [`Hub`] is a [`Handler`](trunkline_server::Handler): a [`Host`](trunkline_server::Host) serves it over any
//! number of transports, to clients of every revision, whatever revisions its upstreams support.
//!
//! # Invariants
//!
//! - Every pair of transports carries every feature between the eras:
//!   `every_pair_of_transports_supports_every_feature_across_eras`.
//! - Each call ends once, at its own caller, with its result or an error, while upstreams are killed, restarted, toggled
//!   and replaced under load: the campaigns in `tests/faults`; `cargo xtask faults` runs them at full length.

mod access;
mod call_rates;
mod connector;
pub mod events;
mod figures;
mod hub;
mod limits;
mod listings_file;
mod local_servers;
mod login;
mod loop_detection;
mod names;
mod options;
mod registry;
mod relay;
mod scope;
mod upstream;
mod upstream_sessions;

pub use trunkline_auth::sign_in::SignInClient;
pub use trunkline_config as config;

pub use self::access::{AccessDecision, AccessItem, AccessRules, AccessStep, RuleMismatch};
pub use self::connector::{ConfigConnector, Connector};
pub use self::figures::{CallFigureReport, FigurePoint, RecentFigures, ServerFigures};
pub use self::hub::{
    ApplyReport, Hub, LoginLink, LoginSummary, ManageError, OfferedItem, OfferedItems, RevokeError,
    ServerSwitch, ToggleOutcome,
};
pub use self::limits::HubLimits;
pub use self::local_servers::LocalServers;
pub use self::login::{LoginAudience, UserLogins, WeakLogins, apply_server_auth, server_url};
pub use self::names::{ItemKind, NameCollision, NameTemplate, NameTemplateError};
pub use self::options::{AnonymousClients, HubOptions, ProcessCaller};
pub use self::registry::ResourceTools;
pub use self::upstream::{UpstreamConnectionState, UpstreamStatus};
pub use self::upstream_sessions::{StoreAccess, UpstreamSessions};
