//! Values on the command line: each is read once, and is right from then on.

mod allowed_hosts;
mod auth_source;
mod duration;
mod endpoint_path;
mod env_option;
mod header_option;
mod listen_address;
mod public_url;
mod redis_url;
mod revision;
mod secret_source;
mod size;
mod store_location;
mod variable_name;

pub(crate) use self::allowed_hosts::{parse_host, parse_origin};
pub(crate) use self::auth_source::AuthSource;
pub(crate) use self::duration::{parse_duration, parse_lifetime};
pub(crate) use self::endpoint_path::parse_endpoint_path;
pub(crate) use self::env_option::EnvOption;
pub(crate) use self::header_option::HeaderOption;
pub(crate) use self::listen_address::ListenAddress;
pub(crate) use self::public_url::parse_public_url;
pub(crate) use self::redis_url::RedisUrl;
pub(crate) use self::revision::{parse_level, parse_revision};
pub(crate) use self::secret_source::{SecretSource, parse_bearer};
pub(crate) use self::size::parse_size;
pub(crate) use self::store_location::StoreLocation;
pub(crate) use self::variable_name::parse_variable_name;
