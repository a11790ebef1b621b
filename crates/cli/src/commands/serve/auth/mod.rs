//! Who may call: `--auth`, and the table `[auth]`.

mod inbound;
mod settings;
mod table;

pub(super) use self::inbound::{InboundAuth, ReloadableAuth};
pub(super) use self::settings::AuthSettings;
#[cfg(test)]
pub(super) use self::table::AuthTable;
