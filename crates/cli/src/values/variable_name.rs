use trunkline_server::EnvPolicy;

/// Reads the name of an environment variable.
///
/// # Errors
/// Returns a message for the user if `text` is not a variable name.
pub(crate) fn parse_variable_name(text: &str) -> Result<String, String> {
    if EnvPolicy::is_name(text) {
        return Ok(text.to_owned());
    }
    if text.contains('=') {
        return Err(
            "expected only the name; the value comes from the environment or from the client".to_owned()
        );
    }
    Err("expected a name such as API_KEY: letters, digits and _, not beginning with a digit".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_given_by_their_names() {
        for (text, expected) in [
            ("API_KEY", Ok("API_KEY")),
            ("API_KEY=x", Err("only the name")),
            ("API*", Err("a name such as")),
            ("", Err("a name such as")),
        ] {
            match (parse_variable_name(text), expected) {
                (Ok(name), Ok(expected)) => assert_eq!(name, expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (parsed, _) => panic!("{text}: {parsed:?}"),
            }
        }
    }
}
