use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;

/// No secret is longer, so that a wrong file is not read to its end.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// The source of a value that should not be on the command line, which every user of the machine can read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SecretSource {
    /// The command line itself.
    Literal(String),
    /// A variable of the environment.
    Variable(String),
    /// The first line of a file.
    File(PathBuf),
}

impl SecretSource {
    /// Reads `env:NAME` and `@FILE`; anything else is the value itself.
    pub(crate) fn parse(text: &str) -> Self {
        match (text.strip_prefix("env:"), text.strip_prefix('@')) {
            (Some(name), _) if !name.is_empty() => Self::Variable(name.to_owned()),
            (_, Some(file)) if !file.is_empty() => Self::File(file.into()),
            _ => Self::Literal(text.to_owned()),
        }
    }

    /// Fetches the value.
    ///
    /// # Errors
    /// It is not where it should be, in a sentence that does not repeat it.
    pub(crate) fn fetch(&self) -> Result<String, String> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Variable(name) => {
                std::env::var(name).map_err(|_| format!("environment variable {name} is not set"))
            }
            Self::File(path) => {
                let mut text = String::new();
                let read = std::fs::File::open(path)
                    .and_then(|file| file.take(MAX_SECRET_BYTES).read_to_string(&mut text));
                read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                let line = text.lines().next().unwrap_or_default().trim();
                if line.is_empty() {
                    return Err(format!("{} is empty", path.display()));
                }
                Ok(line.to_owned())
            }
        }
    }
}

/// A literal value on the command line may still be a secret.
impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal(…)"),
            Self::Variable(name) => f.debug_tuple("EnvVariable").field(name).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Reads what `--bearer` takes.
///
/// # Errors
/// Returns a message for the user.
pub(crate) fn parse_bearer(text: &str) -> Result<SecretSource, String> {
    match SecretSource::parse(text) {
        SecretSource::Literal(_) => {
            Err("expected env:NAME or @FILE: other users of this machine can read the command line"
                .to_owned())
        }
        source => Ok(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_come_from_variables_and_files() {
        for (text, expected) in [
            ("env:TOKEN", SecretSource::Variable("TOKEN".to_owned())),
            ("@/run/token", SecretSource::File("/run/token".into())),
            ("plain", SecretSource::Literal("plain".to_owned())),
            ("env:", SecretSource::Literal("env:".to_owned())),
            ("@", SecretSource::Literal("@".to_owned())),
        ] {
            assert_eq!(SecretSource::parse(text), expected, "{text}");
        }
        assert!(parse_bearer("sekrit").unwrap_err().contains("env:NAME"));
        assert!(parse_bearer("env:TOKEN").is_ok());
        assert!(!format!("{:?}", SecretSource::parse("sekrit")).contains("sekrit"));
    }

    #[test]
    fn missing_secret_error_names_its_source() {
        let missing = SecretSource::parse("env:TRUNKLINE_NO_SUCH_VARIABLE").fetch().unwrap_err();
        assert!(missing.contains("TRUNKLINE_NO_SUCH_VARIABLE"), "{missing}");
        assert!(SecretSource::parse("@/no/such/file").fetch().unwrap_err().contains("/no/such/file"));
    }
}
