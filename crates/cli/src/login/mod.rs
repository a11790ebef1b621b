//! Logins of the user at remote servers: where they are stored, and how a user logs in.
//!
//! # Invariants
//!
//! - No token is printed: `no_output_of_login_commands_has_a_token`.

mod describe;
mod offered_login;
mod options;
mod read_line;
mod store;
mod target;
mod vault;

pub(crate) use self::describe::{describe_expiry, login_failure, scope_text};
pub(crate) use self::options::{
    LoginOptions, authorization, authorizer, browser_agent, paste_agent, user_authorizer,
};
pub(crate) use self::store::{LOGIN_PRINCIPAL, LoginStore, open_store, open_vault};
pub(crate) use self::target::{LoginTarget, is_plain_scope};
pub(crate) use self::vault::VaultSettings;
#[cfg(test)]
pub(crate) use self::vault::VaultTable;
