use trunkline_protocol::{LoggingLevel, Revision};

/// Reads a revision by its date.
///
/// # Errors
/// Returns a message for the user if `text` is not a known revision.
pub(crate) fn parse_revision(text: &str) -> Result<Revision, String> {
    let all = Revision::ALL.map(Revision::as_str).join(", ");
    Revision::parse(text).ok_or_else(|| format!("expected one of {all}"))
}

/// Reads the level of a server's log messages.
///
/// # Errors
/// Returns a message for the user if `text` is not a log level.
pub(crate) fn parse_level(text: &str) -> Result<LoggingLevel, String> {
    let all = LoggingLevel::ALL.map(LoggingLevel::as_str).join(", ");
    LoggingLevel::parse(text).ok_or_else(|| format!("expected one of {all}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_given_by_their_dates() {
        for (text, expected) in [
            ("2026-07-28", Some("2026-07-28")),
            ("modern", None),
            ("2024-11-05", Some("2024-11-05")),
            ("2024-10-07", None),
            ("", None),
        ] {
            assert_eq!(parse_revision(text).ok().map(Revision::as_str), expected, "{text}");
        }
        assert!(parse_level("loud").unwrap_err().contains("warning"));
    }
}
