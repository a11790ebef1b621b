use std::str::FromStr;

use super::SecretSource;

/// A variable for a program that is started: its name, and where its value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvOption {
    pub(crate) name: String,
    pub(crate) value: SecretSource,
}

impl FromStr for EnvOption {
    type Err = String;

    /// Reads `NAME=VALUE`, where the value may be `env:NAME` or `@FILE`; `NAME` alone passes on our own.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, SecretSource::parse(value)),
            None => (text, SecretSource::Variable(text.to_owned())),
        };
        if name.is_empty() || name.contains('\0') {
            return Err("expected NAME=VALUE, or NAME to pass on yours".to_owned());
        }
        Ok(Self { name: name.to_owned(), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_a_value_or_are_passed_on() {
        for (text, name, value) in [
            ("A=b=c", "A", SecretSource::Literal("b=c".to_owned())),
            ("A=", "A", SecretSource::Literal(String::new())),
            ("A", "A", SecretSource::Variable("A".to_owned())),
            ("A=@file", "A", SecretSource::File("file".into())),
        ] {
            assert_eq!(text.parse(), Ok(EnvOption { name: name.to_owned(), value }), "{text}");
        }
        assert!("=x".parse::<EnvOption>().is_err());
        assert!("".parse::<EnvOption>().is_err());
    }
}
