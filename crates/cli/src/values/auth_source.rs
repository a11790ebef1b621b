use std::path::PathBuf;
use std::str::FromStr;

/// Where it is written who may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthSource {
    /// A file of bearer tokens.
    Bearer(PathBuf),
}

impl FromStr for AuthSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("bearer:") {
            Some(file) if !file.is_empty() => Ok(Self::Bearer(file.into())),
            _ => Err("expected bearer:FILE, with `NAME TOKEN` on each line of FILE".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_its_kind_and_its_file() {
        assert_eq!("bearer:/etc/tokens".parse(), Ok(AuthSource::Bearer("/etc/tokens".into())));
        for wrong in ["", "bearer", "bearer:", "/etc/tokens", "basic:/etc/tokens"] {
            assert!(wrong.parse::<AuthSource>().is_err(), "{wrong}");
        }
    }
}
