/// Reports whether a JSON text nests arrays and objects deeper than `limit`.
///
/// Most messages have fewer brackets than the limit, which one vectorized count shows; only the others are walked.
pub fn nests_deeper_than(text: &[u8], limit: usize) -> bool {
    if count_openers(text) <= limit {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Counts brackets without regard to strings: an upper bound of the depth.
fn count_openers(text: &[u8]) -> usize {
    // Blocks of 255 cannot overflow a byte, and sums of bytes are vectorized.
    let block = |block: &[u8]| block.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    text.chunks(255).map(|chunk| usize::from(block(chunk))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_strings() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for (text, limit, expected) in [
            (deep(64), 64, false),
            (deep(65), 64, true),
            (format!("\"{}\"", "[".repeat(500)), 64, false),
            (format!("[\"\\\"{}\"]", "{".repeat(500)), 64, false),
            ("[],".repeat(1000), 64, false),
            ("[".repeat(200_000), 64, true),
        ] {
            assert_eq!(nests_deeper_than(text.as_bytes(), limit), expected, "{:.40}", text);
        }
    }
}
