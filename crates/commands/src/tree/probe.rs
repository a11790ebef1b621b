use std::error::Error as _;

use clap::{Arg, Command};

/// Probes what the parser of one argument accepts, outside of its program.
///
/// Clap exposes the type of a parser, but not its range, and a custom parser may return a number for a text that is
/// not one.
pub(super) struct ParserProbe {
    command: Command,
}

impl ParserProbe {
    pub(super) fn new(arg: &Arg) -> Self {
        let alone = Arg::new("probe")
            .long("probe")
            .value_parser(arg.get_value_parser().clone())
            .allow_hyphen_values(true);
        let command = Command::new("probe").no_binary_name(true).disable_help_flag(true).arg(alone);
        Self { command }
    }

    /// Returns the range of accepted integers, within that of the type; `None` if the parser does not parse plain
    /// integers.
    pub(super) fn integers(&mut self, least: i128, most: i128) -> Option<(i128, i128)> {
        if self.parse_error("x")? != "invalid digit found in string" {
            return None;
        }
        // The range in an error message is only a hint: it is used if probing both ends confirms it.
        let hints = [i64::MIN.into(), i64::MAX.into(), u64::MAX.into(), least - 1, most + 1];
        let hinted = hints.into_iter().find_map(|outside: i128| {
            let (low, high) = read_range(&self.parse_error(&outside.to_string())?)?;
            Some((low.max(least), high.min(most)))
        });
        let candidates = hinted.into_iter().chain([(least, most)]);
        candidates.into_iter().find(|range| self.is_range(*range))
    }

    fn is_range(&mut self, (least, most): (i128, i128)) -> bool {
        let mut accepts = |number: i128| self.parse_error(&number.to_string()).is_none();
        accepts(least) && accepts(most) && !accepts(least - 1) && !accepts(most + 1)
    }

    /// Reports whether the parser accepts decimals, and rejects other text.
    pub(super) fn reads_decimals(&mut self) -> bool {
        self.parse_error("x").as_deref() == Some("invalid float literal") && self.parse_error("1.5").is_none()
    }

    /// Returns the parser's error for a text, if there is one.
    fn parse_error(&mut self, text: &str) -> Option<String> {
        let error = self.command.try_get_matches_from_mut([format!("--probe={text}")]).err()?;
        Some(error.source().map_or_else(String::new, ToString::to_string))
    }
}

/// Parses the range from an error such as `70000 is not in 1..=65535`.
fn read_range(complaint: &str) -> Option<(i128, i128)> {
    let (low, high) = complaint.rsplit_once(" is not in ")?.1.split_once("..")?;
    let low = low.parse().ok()?;
    match high.strip_prefix('=') {
        Some(high) => Some((low, high.parse().ok()?)),
        None => Some((low, high.parse::<i128>().ok()? - 1)),
    }
}

#[cfg(test)]
mod tests {
    use clap::value_parser;

    use super::super::value::ValueKind;
    use super::*;

    fn size(text: &str) -> Result<u64, String> {
        text.trim_end_matches("KiB").parse().map_err(|_| "write a number of bytes".to_owned())
    }

    #[test]
    fn value_kind_is_detected_from_the_parser() {
        let range = |least, most| ValueKind::Integer { least, most };
        let names =
            |names: &[&str]| ValueKind::Choice(names.iter().map(|name| ((*name).to_owned(), None)).collect());
        for (arg, kind) in [
            (Arg::new("a"), ValueKind::Text),
            (Arg::new("a").value_parser(value_parser!(std::path::PathBuf)), ValueKind::Text),
            (Arg::new("a").value_parser(value_parser!(std::net::IpAddr)), ValueKind::Text),
            (Arg::new("a").value_parser(value_parser!(bool)), ValueKind::Boolean),
            (Arg::new("a").value_parser(value_parser!(char)), ValueKind::Character),
            (Arg::new("a").value_parser(value_parser!(f64)), ValueKind::Number),
            (Arg::new("a").value_parser(value_parser!(u16)), range(0, 65535)),
            (Arg::new("a").value_parser(value_parser!(i8)), range(-128, 127)),
            (Arg::new("a").value_parser(value_parser!(u64)), range(0, u64::MAX.into())),
            (Arg::new("a").value_parser(value_parser!(i64)), range(i64::MIN.into(), i64::MAX.into())),
            (Arg::new("a").value_parser(value_parser!(usize)), range(0, usize::MAX as i128)),
            (Arg::new("a").value_parser(value_parser!(u16).range(1..)), range(1, 65535)),
            (Arg::new("a").value_parser(value_parser!(u16).range(..100)), range(0, 99)),
            (Arg::new("a").value_parser(value_parser!(i64).range(-5..=7)), range(-5, 7)),
            (Arg::new("a").value_parser(value_parser!(u64).range(10..20)), range(10, 19)),
            (Arg::new("a").value_parser(value_parser!(std::num::NonZeroU16)), range(1, 65535)),
            (Arg::new("a").value_parser(["red", "green"]), names(&["red", "green"])),
            (Arg::new("a").value_parser(size), ValueKind::Text),
            (Arg::new("a").value_parser(clap::builder::NonEmptyStringValueParser::new()), ValueKind::Text),
        ] {
            assert_eq!(ValueKind::from_arg(&arg), kind, "{:?}", arg.get_value_parser());
        }
    }
}
