//! The servers of a configuration: changed in its file, and at the hub that runs from it.

pub(crate) mod add;
mod file;
mod hub;
pub(crate) mod list;
pub(crate) mod reconnect;
pub(crate) mod remove;
pub(crate) mod sessions;
pub(crate) mod switch;
pub(crate) mod trust;

pub(crate) use self::file::FileArgs;
pub(crate) use self::hub::HubArgs;
