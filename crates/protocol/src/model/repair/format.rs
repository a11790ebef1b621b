//! Checks of single values.

use crate::json::{JsonKind, RawJson};

use super::super::field::ModelValue as _;
use super::uri::is_uri;
use super::{CheckOutcome, RepairLog, malformed};

/// Returns the outcome of a check that changes nothing.
fn is(fits: bool, problem: &'static str) -> CheckOutcome {
    if fits { Ok(None) } else { malformed(problem) }
}

pub(super) fn text(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    is(raw.as_text().is_some(), "must be a string")
}

pub(super) fn flag(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    is(raw.kind() == JsonKind::Bool, "must be true or false")
}

pub(super) fn natural(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    u64::read_value(raw).map(|_| None)
}

pub(super) fn fraction(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    is(is_fraction(raw.as_str()), "must be a number from 0 to 1")
}

pub(super) fn date_time(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    is(raw.as_text().is_some_and(|text| is_date_time(&text)), "must be a date with a time and its zone")
}

pub(super) fn uri(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    is(raw.as_text().is_some_and(|text| is_uri(&text)), "must be a URI")
}

/// Checks `_meta`.
pub(super) fn meta(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    raw.members()?;
    Ok(None)
}

/// Reports whether the text of a JSON value is a number from 0 to 1.
pub(crate) fn is_fraction(json: &str) -> bool {
    JsonKind::of(json) == JsonKind::Number
        && json.parse::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number))
}

/// Reports whether a text is a date with a time and its zone, as RFC 3339 writes it.
///
/// Every official client reads `2025-01-12T15:00:58Z`; of the other forms of ISO 8601 each rejects different ones.
pub(crate) fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let Some(zone) = time.find(['Z', '+', '-']) else { return false };
    let (Some(time), Some(zone)) = (time.get(..zone), time.get(zone..)) else { return false };
    is_date(date) && is_time(time) && is_zone(zone)
}

fn is_date(date: &str) -> bool {
    let mut parts = date.split('-');
    let (Some(year), Some(month), Some(day), None) = (
        parts.next().and_then(digits::<4>),
        parts.next().and_then(digits::<2>),
        parts.next().and_then(digits::<2>),
        parts.next(),
    ) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time(time: &str) -> bool {
    let (whole, is_fraction) = match time.split_once('.') {
        Some((whole, fraction)) => {
            (whole, !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()))
        }
        None => (time, true),
    };
    let parts: Vec<_> = whole.split(':').map(digits::<2>).collect();
    is_fraction && matches!(*parts, [Some(0..=23), Some(0..=59), Some(0..=59)])
}

fn is_zone(zone: &str) -> bool {
    let offset = zone.strip_prefix(['+', '-']).and_then(|offset| offset.split_once(':'));
    let is_offset =
        |(hours, minutes)| matches!((digits::<2>(hours), digits::<2>(minutes)), (Some(0..=23), Some(0..=59)));
    zone == "Z" || offset.is_some_and(is_offset)
}

/// Reads exactly so many digits.
fn digits<const N: usize>(text: &str) -> Option<u32> {
    let is_number = text.len() == N && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dates_that_every_client_reads_are_date_times() {
        for (text, expected) in [
            ("2025-01-12T15:00:58Z", true),
            ("2025-01-12T15:00:58.123456+05:30", true),
            ("2024-02-29T00:00:00-11:59", true),
            ("2000-02-29T23:59:59Z", true),
            ("1900-02-29T23:59:59Z", false),
            ("2025-02-29T00:00:00Z", false),
            ("2025-04-31T00:00:00Z", false),
            ("2025-13-01T00:00:00Z", false),
            ("2025-00-10T00:00:00Z", false),
            ("2025-01-00T00:00:00Z", false),
            ("2025-01-12T24:00:00Z", false),
            ("2025-01-12T15:60:00Z", false),
            ("2025-01-12T15:00:60Z", false),
            ("2025-01-12T15:00Z", false),
            ("2025-01-12T15:00:58", false),
            ("2025-01-12T15:00:58.Z", false),
            ("2025-01-12T15:00:58+0530", false),
            ("2025-01-12T15:00:58+24:00", false),
            ("2025-01-12t15:00:58z", false),
            ("2025-01-12 15:00:58Z", false),
            ("2025-01-12", false),
            ("25-01-12T15:00:58Z", false),
            ("+025-01-12T15:00:58Z", false),
            ("2025-01-12T15:00:58Z ", false),
            ("yesterday", false),
            ("T", false),
            ("", false),
        ] {
            assert_eq!(is_date_time(text), expected, "{text}");
        }
    }

    #[test]
    fn fractions_are_numbers_from_zero_to_one() {
        for (json, expected) in [
            ("0", true),
            ("1", true),
            ("0.5", true),
            ("1e-3", true),
            ("-0", true),
            ("1.01", false),
            ("-0.1", false),
        ] {
            assert_eq!(is_fraction(json), expected, "{json}");
        }
        assert!(
            !is_fraction("\"0\"") && !is_fraction("null") && !is_fraction("[0]") && !is_fraction("1e999")
        );
    }
}
