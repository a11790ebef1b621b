//! Lone surrogates, which JSON can escape and no Unicode text can hold.

/// Replaces every escape of a lone surrogate by that of U+FFFD, which has the same length; `None` if there is none.
///
/// JavaScript writes such escapes when a text was truncated within a character. Its own parser accepts them, those of
/// other languages reject the whole message.
pub(crate) fn replace_lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut replaced: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', bytes.get(at..)?) {
        at += offset;
        let Some(unit) = unit_at(bytes, at) else {
            // Another escape, of which the second character begins none.
            at += 2;
            continue;
        };
        let is_pair =
            is_high(unit) && unit_at(bytes, at + ESCAPE).is_some_and(|next| (0xDC00..0xE000).contains(&next));
        let is_lone = !is_pair && (0xD800..0xE000).contains(&unit);
        if is_lone
            && let Some(digits) = replaced.get_or_insert_with(|| bytes.to_vec()).get_mut(at + 2..at + ESCAPE)
        {
            digits.copy_from_slice(b"fffd");
        }
        at += if is_pair { 2 * ESCAPE } else { ESCAPE };
    }
    replaced.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// Returns the code unit that is escaped here by its number, if one is.
fn unit_at(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogate_escapes_are_replaced() {
        for (text, expected) in [
            (r#""plain""#, None),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud83d""#, None),
            (r#""\u0041\n\uD7FF\uE000""#, None),
            (r#""\ud83d""#, Some(r#""\ufffd""#)),
            (r#""\uDE00x""#, Some(r#""\ufffdx""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#"{"\ud83dk":"\ude00\ud83d"}"#, Some(r#"{"\ufffdk":"\ufffd\ufffd"}"#)),
            (r#""\ud83d\\ude00""#, Some(r#""\ufffd\\ude00""#)),
        ] {
            assert_eq!(replace_lone_surrogates(text).as_deref(), expected, "{text}");
        }
    }
}
