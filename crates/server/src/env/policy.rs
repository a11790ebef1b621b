/// The environment variables that handlers may see: only those named here.
///
/// A server should rather have its own credentials, or have its users authorize it; headers are for values that the
/// caller owns and wants used on its behalf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvPolicy {
    /// Variables of this process that callers over its own pipes and memory may have. Default none.
    pub from_process: Vec<String>,
    /// Variables that callers over HTTP may bring as `X-Env-NAME` headers, over the loopback or TLS. Default none.
    /// Header names are case-insensitive, so that of two names which differ only in case one counts.
    pub from_headers: Vec<String>,
}

impl EnvPolicy {
    /// Reports whether a text can name a variable: letters, digits and `_`, not beginning with a digit, at most 128.
    pub fn is_name(text: &str) -> bool {
        let mut bytes = text.bytes();
        let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        begins && text.len() <= 128 && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_variable_names_must_be_ascii_identifiers() {
        for (text, is_name) in [
            ("API_KEY", true),
            ("_x9", true),
            ("", false),
            ("9X", false),
            ("A-B", false),
            ("A*", false),
            ("A=B", false),
            ("Ä", false),
        ] {
            assert_eq!(EnvPolicy::is_name(text), is_name, "{text}");
        }
        assert!(!EnvPolicy::is_name(&"A".repeat(129)));
    }
}
