use std::str::FromStr;

use http::HeaderName;

use super::SecretSource;

/// A header to send along: its name, and where its value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderOption {
    pub(crate) name: String,
    pub(crate) value: SecretSource,
}

impl FromStr for HeaderOption {
    type Err = String;

    /// Reads `NAME: VALUE`, where the value may be `env:NAME` or `@FILE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || "expected NAME:VALUE, NAME:env:VARIABLE or NAME:@FILE".to_owned();
        let (name, value) = text.split_once(':').ok_or_else(malformed)?;
        HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is not a valid header name"))?;
        Ok(Self { name: name.to_owned(), value: SecretSource::parse(value.trim()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_name_and_a_value_from_somewhere() {
        for (text, name, value) in [
            ("X-Key: abc", "X-Key", "abc"),
            ("X-Key:abc:def", "X-Key", "abc:def"),
            ("Authorization: Bearer x", "Authorization", "Bearer x"),
            ("X-Empty:", "X-Empty", ""),
        ] {
            let read: HeaderOption = text.parse().unwrap();
            assert_eq!(
                (read.name.as_str(), read.value),
                (name, SecretSource::Literal(value.to_owned())),
                "{text}"
            );
        }
        let read: HeaderOption = "X-Key: env:KEY".parse().unwrap();
        assert_eq!(read.value, SecretSource::Variable("KEY".to_owned()));
        for wrong in ["", "X-Key", ": x", "X Key: x", "Ключ: x"] {
            assert!(wrong.parse::<HeaderOption>().is_err(), "{wrong}");
        }
    }
}
