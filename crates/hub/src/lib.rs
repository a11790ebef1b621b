//! Many servers behind one, and the bridge between the eras.
//!
//! A [`Hub`] is a [`Handler`](trunkline_server::Handler): a [`Host`](trunkline_server::Host) serves it over any number of
//! transports, to clients of every revision, whatever revisions its servers speak.

mod catalogue_file;
mod connector;
mod hub;
mod limits;
mod names;
mod options;
mod registry;
mod relay;
mod scope;
mod trail;
mod upstream;

pub use self::connector::{Connector, Dial};
pub use self::hub::{Applied, Hub, ManageError, Switch, Toggled};
pub use self::limits::HubLimits;
pub use self::names::{Collision, Kind, NameTemplate, NameTemplateError};
pub use self::options::{AnonymousClients, HubOptions};
pub use self::registry::ResourceTools;
pub use self::upstream::{State, Status};
