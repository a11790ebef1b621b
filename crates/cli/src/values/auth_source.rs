use std::path::PathBuf;
use std::str::FromStr;

/// Where it is written who may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthSource {
    /// A file of bearer tokens.
    Bearer(PathBuf),
    /// A configuration file with a table `[auth]`.
    Config(PathBuf),
}

impl FromStr for AuthSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("bearer", file)) if !file.is_empty() => Ok(Self::Bearer(file.into())),
            Some(("config", file)) if !file.is_empty() => Ok(Self::Config(file.into())),
            _ => Err("expected bearer:FILE, with `NAME TOKEN` on each line of FILE, or config:FILE, with a table [auth]"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_source_names_its_kind_and_file() {
        assert_eq!("bearer:/etc/tokens".parse(), Ok(AuthSource::Bearer("/etc/tokens".into())));
        assert_eq!("config:a.toml".parse(), Ok(AuthSource::Config("a.toml".into())));
        for wrong in ["", "bearer", "bearer:", "config:", "/etc/tokens", "basic:/etc/tokens"] {
            assert!(wrong.parse::<AuthSource>().is_err(), "{wrong}");
        }
    }
}
