use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// One challenge of a `WWW-Authenticate` header: a scheme and its parameters
/// ([RFC 9110 §11.6.1](https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1)).
///
/// ```
/// use trunkline_server::http::AuthChallenge;
///
/// let challenge = AuthChallenge::new("DPoP").param("algs", "ES256 EdDSA");
/// assert_eq!(challenge.to_string(), r#"DPoP algs="ES256 EdDSA""#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthChallenge {
    scheme: Cow<'static, str>,
    params: Vec<(Cow<'static, str>, String)>,
}

impl AuthChallenge {
    /// Makes a challenge without parameters.
    pub fn new(scheme: impl Into<Cow<'static, str>>) -> Self {
        Self { scheme: scheme.into(), params: Vec::new() }
    }

    /// Makes a challenge for a bearer token ([RFC 6750 §3](https://www.rfc-editor.org/rfc/rfc6750#section-3)).
    pub fn bearer() -> Self {
        Self::new("Bearer")
    }

    /// Adds a parameter. Characters that a header cannot have are replaced.
    #[must_use]
    pub fn param(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    /// Adds a parameter unless the challenge has it.
    pub(in crate::http) fn add_default(&mut self, name: &'static str, value: &str) {
        if !self.params.iter().any(|(known, _)| known == name) {
            self.params.push((name.into(), value.to_owned()));
        }
    }
}

impl fmt::Display for AuthChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        for (at, (name, value)) in self.params.iter().enumerate() {
            write!(f, "{}{name}=\"", if at == 0 { " " } else { ", " })?;
            for character in value.chars() {
                match character {
                    '"' | '\\' => write!(f, "\\{character}")?,
                    ' '..='~' => f.write_char(character)?,
                    _ => f.write_char('?')?,
                }
            }
            f.write_char('"')?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_parameters_are_quoted_and_escaped() {
        let challenge = AuthChallenge::bearer();
        for (challenge, expected) in [
            (challenge.clone(), "Bearer"),
            (challenge.clone().param("a", "b").param("c", "d e"), r#"Bearer a="b", c="d e""#),
            (challenge.clone().param("a", r#"say "x" \"#), r#"Bearer a="say \"x\" \\""#),
            (challenge.param("a", "line\r\nbreak é"), r#"Bearer a="line??break ?""#),
        ] {
            assert_eq!(challenge.to_string(), expected);
        }
    }
}
