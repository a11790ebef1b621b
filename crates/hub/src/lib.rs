//! Aggregates many MCP servers behind one endpoint, and bridges the two protocol eras.
//!
//! A [`Hub`] is a [`Handler`](trunkline_server::Handler): a [`Host`](trunkline_server::Host) serves it over any
//! number of transports, to clients of every revision, whatever revisions its upstreams support.

mod catalogue_file;
mod connector;
mod hub;
mod limits;
mod loop_detection;
mod names;
mod options;
mod registry;
mod relay;
mod scope;
mod upstream;

pub use self::connector::{ConfigConnector, Connector};
pub use self::hub::{ApplyReport, Hub, ManageError, ServerSwitch, ToggleOutcome};
pub use self::limits::HubLimits;
pub use self::names::{ItemKind, NameCollision, NameTemplate, NameTemplateError};
pub use self::options::{AnonymousClients, HubOptions};
pub use self::registry::ResourceTools;
pub use self::upstream::{UpstreamHealth, UpstreamStatus};
