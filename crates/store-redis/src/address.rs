//! The addresses of stores in Redis.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_SENTINEL_PORT: u16 = 26379;
const DEFAULT_PREFIX: &str = "trunkline";

/// The address of a store in Redis.
///
/// | form | |
/// |---|---|
/// | `redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]` | one server |
/// | `redis+sentinel://…@HOST[:PORT],…/NAME[/DB]` | the primary that these sentinels name |
/// | `redis+cluster://…@HOST[:PORT],…` | a cluster, by some of its nodes |
///
/// With `rediss` in place of `redis` connections use TLS. After a `?` follow `password_file=FILE`, which keeps the password
/// out of the address, `ca=FILE`, the PEM file of the authorities to trust in place of those of the system, and
/// `prefix=NAME`, with which all keys begin (`trunkline` by default). User and password are percent-encoded.
///
/// The password is not in the [`Display`](fmt::Display) and [`Debug`] forms.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    pub(crate) topology: Topology,
    pub(crate) is_encrypted: bool,
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    prefix: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Single { database: i64 },
    Sentinel { name: String, database: i64 },
    Cluster,
}

/// Why an address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The address is malformed.
    #[error("malformed Redis address: {0}")]
    Malformed(&'static str),
    /// A file that the address names cannot be used.
    #[error("{} cannot be used: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: String,
    },
    /// The client library rejects the address.
    #[error("the Redis address cannot be used: {0}")]
    Rejected(String),
}

impl RedisAddress {
    /// Returns what all keys of the store begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the file with the password, if the address names one.
    pub fn password_file(&self) -> Option<&Path> {
        self.password_file.as_deref()
    }

    /// Returns the file of the authorities to trust, if the address names one.
    pub fn ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// Counts relative paths in the address from this folder.
    #[must_use]
    pub fn relative_to(mut self, folder: &Path) -> Self {
        let join = |path: PathBuf| folder.join(path);
        self.password_file = self.password_file.map(join);
        self.ca_file = self.ca_file.map(join);
        self
    }
}

impl FromStr for RedisAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        use AddressError::Malformed;
        let (scheme, rest) =
            text.split_once("://").ok_or(Malformed("it begins with redis:// or rediss://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, authority),
        };
        let (security, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let is_encrypted = match security {
            "redis" => false,
            "rediss" => true,
            _ => return Err(Malformed("the scheme is redis or rediss, with +sentinel or +cluster")),
        };
        let (topology, port) = match kind {
            "" => (Topology::Single { database: parse_database(path)? }, DEFAULT_PORT),
            "sentinel" => {
                let (name, database) = path.split_once('/').unwrap_or((path, ""));
                if name.is_empty() {
                    return Err(Malformed(
                        "the name of the primary follows the sentinels, as in …:26379/mymaster",
                    ));
                }
                (
                    Topology::Sentinel { name: decode(name)?, database: parse_database(database)? },
                    DEFAULT_SENTINEL_PORT,
                )
            }
            "cluster" if path.is_empty() => (Topology::Cluster, DEFAULT_PORT),
            "cluster" => return Err(Malformed("a cluster has no databases, so there is no path")),
            _ => return Err(Malformed("the scheme is redis or rediss, with +sentinel or +cluster")),
        };
        let hosts = hosts.split(',').map(|host| parse_host(host, port)).collect::<Result<Vec<_>, _>>()?;
        if hosts.len() > 1 && matches!(topology, Topology::Single { .. }) {
            return Err(Malformed("several hosts need +sentinel or +cluster in the scheme"));
        }
        let mut address = Self {
            topology,
            is_encrypted,
            hosts,
            user: None,
            password: None,
            password_file: None,
            ca_file: None,
            prefix: DEFAULT_PREFIX.to_owned(),
        };
        address.set_credentials(credentials)?;
        address.set_options(query)?;
        Ok(address)
    }
}

impl RedisAddress {
    fn set_credentials(&mut self, credentials: Option<&str>) -> Result<(), AddressError> {
        let Some(credentials) = credentials else { return Ok(()) };
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (credentials, None),
        };
        self.user = Some(decode(user)?).filter(|user| !user.is_empty());
        self.password = password.map(decode).transpose()?.filter(|password| !password.is_empty());
        Ok(())
    }

    fn set_options(&mut self, query: &str) -> Result<(), AddressError> {
        use AddressError::Malformed;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decode(value)?;
            if value.is_empty() {
                return Err(Malformed("an option after ? has no value"));
            }
            match key {
                "password_file" => self.password_file = Some(value.into()),
                "ca" => self.ca_file = Some(value.into()),
                "prefix"
                    if value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) =>
                {
                    self.prefix = value;
                }
                "prefix" => return Err(Malformed("the prefix has letters, digits, `-`, `_` and `.` only")),
                _ => return Err(Malformed("the options after ? are password_file, ca and prefix")),
            }
        }
        if self.password.is_some() && self.password_file.is_some() {
            return Err(Malformed("there is a password and a password_file"));
        }
        if self.ca_file.is_some() && !self.is_encrypted {
            return Err(Malformed("ca needs TLS, which is rediss in place of redis"));
        }
        Ok(())
    }
}

fn parse_database(text: &str) -> Result<i64, AddressError> {
    match text {
        "" => Ok(0),
        digits if digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_err(|_| AddressError::Malformed("the database is a number"))
        }
        _ => Err(AddressError::Malformed("the database is a number")),
    }
}

/// Parses `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`.
fn parse_host(text: &str, default_port: u16) -> Result<(String, u16), AddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(AddressError::Malformed("a `]` is missing"))?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| AddressError::Malformed("a port is a number up to 65535"))?,
        None => default_port,
    };
    match host {
        "" => Err(AddressError::Malformed("a host is missing")),
        host => Ok((host.to_owned(), port)),
    }
}

/// Decodes percent-encoded text.
fn decode(text: &str) -> Result<String, AddressError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let code = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        decoded.push(code.ok_or(AddressError::Malformed("two hexadecimal digits follow a `%`"))?);
    }
    String::from_utf8(decoded).map_err(|_| AddressError::Malformed("it is not UTF-8"))
}

/// Shows the address without its password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_encrypted { "rediss" } else { "redis" })?;
        f.write_str(match self.topology {
            Topology::Single { .. } => "://",
            Topology::Sentinel { .. } => "+sentinel://",
            Topology::Cluster => "+cluster://",
        })?;
        if self.user.is_some() || self.password.is_some() {
            let password = if self.password.is_some() { ":***" } else { "" };
            write!(f, "{}{password}@", self.user.as_deref().unwrap_or_default())?;
        }
        for (at, (host, port)) in self.hosts.iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            match host.contains(':') {
                true => write!(f, "{separator}[{host}]:{port}")?,
                false => write!(f, "{separator}{host}:{port}")?,
            }
        }
        match &self.topology {
            Topology::Single { database } => write!(f, "/{database}"),
            Topology::Sentinel { name, database } => write!(f, "/{name}/{database}"),
            Topology::Cluster => Ok(()),
        }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_shown_without_their_password() {
        for (text, shown) in [
            ("redis://localhost", "redis://localhost:6379/0"),
            ("rediss://h:7000/3", "rediss://h:7000/3"),
            ("redis://[::1]:7000/", "redis://[::1]:7000/0"),
            ("redis://hub:s%40crit@h", "redis://hub:***@h:6379/0"),
            ("redis://:sentinel@h", "redis://:***@h:6379/0"),
            ("rediss://hub@h?password_file=/run/p&ca=ca.pem&prefix=b", "rediss://hub@h:6379/0"),
            ("redis+sentinel://a,b:7/main/2", "redis+sentinel://a:26379,b:7/main/2"),
            ("rediss+cluster://u:p@a,b:7", "rediss+cluster://u:***@a:6379,b:7"),
        ] {
            let address: RedisAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(format!("{address:?}"), format!("RedisAddress({shown})"));
        }
        let address: RedisAddress = "redis://hub:s%40c%3Arit@h?prefix=other".parse().unwrap();
        assert_eq!(address.password.as_deref(), Some("s@c:rit"));
        assert_eq!(address.prefix(), "other");
        let address: RedisAddress = "rediss://h?password_file=p&ca=/c".parse().unwrap();
        let address = address.relative_to(Path::new("/etc/hub"));
        assert_eq!(address.password_file.as_deref(), Some(Path::new("/etc/hub/p")));
        assert_eq!(address.ca_file.as_deref(), Some(Path::new("/c")));
    }

    #[test]
    fn malformed_addresses_are_rejected_without_repeating_them() {
        for text in [
            "localhost",
            "http://h",
            "redis+ring://h",
            "redis://",
            "redis://h:port",
            "redis://h:99999",
            "redis://h/name",
            "redis://a,b",
            "redis://[::1",
            "redis://user:s%4@h",
            "redis://user:secret@h?unknown=1",
            "redis://user:secret@h?password_file=p",
            "redis://h?ca=c",
            "redis://h?prefix=a{b}",
            "redis://h?prefix=",
            "redis+sentinel://h",
            "redis+cluster://h/1",
        ] {
            let error = text.parse::<RedisAddress>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{text}: {error}");
        }
    }
}
