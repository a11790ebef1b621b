/// Reads a number of bytes, such as `65536`, `512KiB` or `4MiB`.
///
/// # Errors
/// Returns a message for the user if `text` is not a size.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let bytes: usize = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("expected a number of bytes, or one with KiB, MiB or GiB".to_owned()),
    };
    let number: usize = number.parse().map_err(|_| "the number is missing or too large".to_owned())?;
    match number.checked_mul(bytes) {
        Some(size @ MIN_MESSAGE_SIZE..=MAX_MESSAGE_SIZE) => Ok(size),
        _ => Err("at least 1KiB and at most 1GiB".to_owned()),
    }
}

/// A handshake must fit.
const MIN_MESSAGE_SIZE: usize = 1 << 10;

/// A peer can make us hold this much on each connection.
const MAX_MESSAGE_SIZE: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        for (text, size) in [
            ("1024", Some(1024)),
            ("1024B", Some(1024)),
            ("512KiB", Some(512 << 10)),
            ("4MiB", Some(4 << 20)),
            ("1GiB", Some(1 << 30)),
            ("2GiB", None),
            ("1023", None),
            ("0", None),
            ("99999999999999999999", None),
            ("18446744073709551615GiB", None),
            ("4MB", None),
            ("4M", None),
            ("MiB", None),
            ("-4MiB", None),
            ("", None),
        ] {
            assert_eq!(parse_size(text).ok(), size, "{text}");
        }
    }
}
