use std::time::Duration;

/// Reads a whole number with its unit, such as `500ms`, `5s`, `2m` or `1h`.
///
/// # Errors
/// Returns a message for the user if `text` is not a duration.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a whole number and a unit: 500ms, 5s, 2m or 1h".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "the number is missing or too large".to_owned())?;
    let total = number.checked_mul(millis).filter(|total| *total <= MAX_MILLIS);
    total.map(Duration::from_millis).ok_or_else(|| "at most 8760h, which is a year".to_owned())
}

/// Reads how long something lives, which is not no time at all.
///
/// # Errors
/// Returns a message for the user if `text` is not a lifetime.
pub(crate) fn parse_lifetime(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("expected 1s or more".to_owned()),
        lifetime => Ok(lifetime),
    }
}

/// Clocks and timers take what is added to them up to here without complaint.
const MAX_MILLIS: u64 = 8_760 * 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        for (text, millis) in [
            ("0s", Some(0)),
            ("500ms", Some(500)),
            ("5s", Some(5_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("8760h", Some(MAX_MILLIS)),
            ("8761h", None),
            ("99999999999999999999s", None),
            ("18446744073709551615h", None),
            ("5", None),
            ("s", None),
            ("", None),
            ("1.5s", None),
            ("-1s", None),
            (" 1s", None),
            ("1 s", None),
            ("1d", None),
        ] {
            assert_eq!(parse_duration(text).ok(), millis.map(Duration::from_millis), "{text}");
        }
    }
}
