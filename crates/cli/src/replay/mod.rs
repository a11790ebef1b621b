//! Record files as material: the exchanges in them, a mock server that repeats them, and comparisons.

mod against;
mod canonical;
mod comparison;
mod difference;
mod exchange;
mod mock_server;
mod timeline;

pub(crate) use self::against::compare_with_server;
pub(crate) use self::canonical::IgnoredPaths;
pub(crate) use self::comparison::compare_recordings;
pub(crate) use self::exchange::Recording;
pub(crate) use self::mock_server::MockServer;
pub(crate) use self::timeline::{describe_event, event_line};
