use crate::commands::serve::health;

/// Reads the path of the endpoint, such as `/mcp`.
///
/// # Errors
/// Returns a message for the user if `text` is not a usable path.
pub(crate) fn parse_endpoint_path(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
    if !text.starts_with('/') || !text.chars().all(plain) {
        return Err(
            "expected a path such as /mcp: a slash, then letters, digits and any of / - . _ ~".to_owned()
        );
    }
    if [health::LIVENESS_PATH, health::READINESS_PATH, health::METRICS_PATH].contains(&text) {
        return Err("this path is reserved for health checks and metrics".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_with_a_slash_and_need_no_escapes() {
        for (text, good) in [
            ("/mcp", true),
            ("/", true),
            ("/a/b-c_d.e~f", true),
            ("mcp", false),
            ("", false),
            ("/a b", false),
            ("/a?b", false),
            ("/a#b", false),
            ("/%20", false),
            ("/ä", false),
            ("/healthz", false),
            ("/readyz", false),
        ] {
            assert_eq!(parse_endpoint_path(text).is_ok(), good, "{text}");
        }
    }
}
