use std::fmt;
use std::path::{Path, PathBuf};

use trunkline_store_redis::RedisAddress;

/// The URL of a store in Redis, as it was given: it may have a password, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    text: String,
    /// The folder that relative paths in the URL count from.
    folder: PathBuf,
}

impl RedisUrl {
    /// Takes the URL of a store in Redis; any other text is given back.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let scheme = text.split_once("://")?.0;
        let is_redis = matches!(scheme.split('+').next(), Some("redis" | "rediss"));
        is_redis.then(|| Self { text: text.to_owned(), folder: PathBuf::new() })
    }

    /// Counts relative paths from this folder.
    pub(crate) fn relative_to(self, folder: &Path) -> Self {
        Self { folder: folder.join(&self.folder), ..self }
    }

    /// Parses the URL. Before the host, `${NAME}` stands for a variable of the environment.
    ///
    /// # Errors
    /// Returns a message for the user, without the URL.
    pub(crate) fn address(&self, variable: impl Fn(&str) -> Option<String>) -> Result<RedisAddress, String> {
        let text = match self.text.rsplit_once('@') {
            Some((before, after)) => format!("{}@{after}", with_variables(before, variable)?),
            None => self.text.clone(),
        };
        let address: RedisAddress = text.parse().map_err(|error| format!("{error}"))?;
        Ok(address.relative_to(&self.folder))
    }
}

/// Replaces each `${NAME}` by the percent-encoded value of the variable.
fn with_variables(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or("a `}` is missing after `${`")?;
        let value = variable(name).ok_or_else(|| format!("environment variable {name} is not set"))?;
        replaced.push_str(before);
        replaced.extend(value.bytes().map(|byte| format!("%{byte:02x}")));
        rest = after;
    }
    replaced.push_str(rest);
    Ok(replaced)
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisUrl(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_url_takes_its_password_from_the_environment_and_never_shows_it() {
        let variable = |name: &str| (name == "SECRET").then(|| "s@c:r/t".to_owned());
        let address = |text: &str| RedisUrl::new(text).unwrap().address(variable);
        for (text, expected) in [
            ("redis://hub:${SECRET}@h", "redis://hub:s%40c%3Ar%2Ft@h"),
            ("rediss://${SECRET}@h/1", "rediss://s%40c%3Ar%2Ft@h/1"),
            ("redis+cluster://a,b", "redis+cluster://a,b"),
        ] {
            assert_eq!(address(text).unwrap(), expected.parse().unwrap(), "{text}");
        }
        assert!(address("redis://hub:${OTHER}@h").unwrap_err().contains("OTHER is not set"));
        assert!(address("redis://hub:${SECRET@h").unwrap_err().contains("`}`"));
        assert!(!address("redis://hub:secret@h:port").unwrap_err().contains("secret"));
        assert!(!format!("{:?}", RedisUrl::new("redis://:secret@h")).contains("secret"));
        for text in ["redis", "http://h", "file:redis://h", "redisx://h"] {
            assert!(RedisUrl::new(text).is_none(), "{text}");
        }
        let url = RedisUrl::new("rediss://h?ca=ca.pem").unwrap().relative_to(Path::new("/etc/hub"));
        assert_eq!(url.address(variable).unwrap(), "rediss://h?ca=/etc/hub/ca.pem".parse().unwrap());
    }
}
