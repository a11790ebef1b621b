use bytes::Bytes;
use proptest::prelude::*;
use trunkline_protocol::RequestId;
use trunkline_protocol::envelope::OversizedMessage;
use trunkline_protocol::line::{LineFramer, LineTooLong, encode_line};

use crate::chunks::cut;

const LIMIT: usize = 8;

/// Feeds the pieces one by one and collects every line, then what is left at the end.
fn lines_of(limit: usize, pieces: &[&[u8]]) -> Vec<Result<Bytes, LineTooLong>> {
    let mut framer = LineFramer::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        framer.buffer().extend_from_slice(piece);
        lines.extend(std::iter::from_fn(|| framer.next_line()));
    }
    lines.extend(std::iter::from_fn(|| framer.finish()));
    lines
}

/// Writes the outcome as text: lines joined with `|`, `!` for a refused one.
fn outcome(input: &[u8]) -> String {
    let shown = lines_of(LIMIT, &[input]).into_iter().map(|line| match line {
        Ok(line) => String::from_utf8_lossy(&line).into_owned(),
        Err(LineTooLong { limit: LIMIT }) => "!".to_owned(),
        Err(LineTooLong { limit }) => format!("!{limit}"),
    });
    shown.collect::<Vec<_>>().join("|")
}

#[test]
fn line_framer_splits_only_at_newlines() {
    let table: [(&[u8], &str); 17] = [
        (b"", ""),
        (b"a\n", "a"),
        (b"a\nb\n", "a|b"),
        (b"a\r\nb\r\n", "a|b"),
        (b"a\rb\n", "a\rb"),
        (b"a\r\r\n", "a\r"),
        (b"\n\r\n  \t\n\na\n\n", "a"),
        (b" a \n", " a "),
        (b"last", "last"),
        (b"a\nlast\r", "a|last"),
        (b"a\n  ", "a"),
        (b"12345678\n", "12345678"),
        (b"12345678\r\n", "12345678"),
        (b"123456789\n", "!"),
        (b"123456789", "!"),
        (b"a\n1234567890123\nb\n", "a|!|b"),
        (b"1234567890123\n123456789\r\nb", "!|!|b"),
    ];
    for (input, expected) in table {
        assert_eq!(outcome(input), expected, "input {:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn line_framer_waits_for_the_rest_of_a_line() {
    let mut framer = LineFramer::new(LIMIT);
    for piece in [&b"{"[..], b"}", b"\r"] {
        framer.buffer().extend_from_slice(piece);
        assert_eq!(framer.next_line(), None);
    }
    framer.buffer().extend_from_slice(b"\n");
    assert_eq!(framer.next_line(), Some(Ok(Bytes::from_static(b"{}"))));
    assert_eq!(framer.next_line(), None);
}

#[test]
fn line_framer_rejects_an_endless_line_once() {
    let mut framer = LineFramer::new(LIMIT);
    framer.buffer().extend_from_slice(b"1234567890");
    assert_eq!(framer.next_line(), Some(Err(LineTooLong { limit: LIMIT })));
    for _ in 0..100 {
        framer.buffer().extend_from_slice(b"1234567890");
        assert_eq!(framer.next_line(), None);
        assert!(framer.buffer().is_empty(), "bytes of a refused line are not kept");
    }
    framer.buffer().extend_from_slice(b"tail\nnext\n");
    assert_eq!(framer.next_line(), Some(Ok(Bytes::from_static(b"next"))));
    assert_eq!(framer.finish(), None);
}

#[test]
fn rejected_line_is_searched_to_its_end_for_the_request_that_it_answers() {
    let limit = 1 << 10;
    let text = "x".repeat(100 << 10);
    let line = format!(r#"{{"result":{{"text":"{text}","id":9}},"jsonrpc":"2.0","id":7}}"#);
    for (end, size) in [("\n", 64), ("\n", 4 << 10), ("\r\n", 1 << 20), ("", 4 << 10)] {
        let whole = format!("{line}{end}");
        let mut framer = LineFramer::new(limit);
        let mut refused = Vec::new();
        for piece in whole.as_bytes().chunks(size) {
            framer.buffer().extend_from_slice(piece);
            refused.extend(framer.next_line());
            assert!(framer.buffered() <= limit + size);
        }
        refused.extend(std::iter::from_fn(|| framer.finish()));
        assert_eq!(refused, [Err(LineTooLong { limit })]);
        assert_eq!(framer.take_oversized(), OversizedMessage::Response(RequestId::from_number(7)));
    }
}

#[test]
fn line_framer_finishes_silently_inside_a_rejected_line() {
    assert_eq!(outcome(b"12345678901234"), "!");
}

#[test]
fn endless_line_uses_at_most_the_limit_and_the_buffer_shrinks_afterwards() {
    const LONG: usize = 1 << 20;
    let read = vec![b'x'; 1 << 16];
    let mut framer = LineFramer::new(LONG);
    let mut refused = 0;
    for _ in 0..1024 {
        framer.buffer().extend_from_slice(&read);
        refused += usize::from(framer.next_line().is_some());
        assert!(framer.buffer().capacity() <= 2 * LONG + 2 * read.len());
    }
    assert_eq!(refused, 1);
    framer.buffer().extend_from_slice(b"\nok\n");
    assert_eq!(framer.next_line(), Some(Ok(Bytes::from_static(b"ok"))));
    assert_eq!(framer.next_line(), None);
    assert!(framer.buffer().capacity() <= LONG / 2, "{}", framer.buffer().capacity());
}

#[test]
fn line_framer_releases_the_memory_of_a_long_line() {
    let mut framer = LineFramer::new(4 << 20);
    framer.buffer().extend_from_slice(&vec![b'x'; 2 << 20]);
    framer.buffer().extend_from_slice(b"\nbegun");
    let line = framer.next_line().unwrap().unwrap();
    assert_eq!(line.len(), 2 << 20);
    assert_eq!(framer.next_line(), None);
    drop(line);
    // If the old memory were still behind the buffer, it would be found again here.
    framer.buffer().reserve(1024);
    assert!(framer.buffer().capacity() < 1 << 20, "{}", framer.buffer().capacity());
    framer.buffer().extend_from_slice(b" and done\n");
    assert_eq!(framer.next_line(), Some(Ok(Bytes::from_static(b"begun and done"))));
}

#[test]
fn encode_line_puts_any_json_on_one_line() {
    let table: [(&[u8], &[u8]); 4] = [
        (b"{}", b"{}\n"),
        (b"", b"\n"),
        (b"{\n  \"a\": 1\r\n}", b"{   \"a\": 1  }\n"),
        (b"\"\\n\"", b"\"\\n\"\n"),
    ];
    for (json, expected) in table {
        let mut out = b"before\n".to_vec();
        encode_line(&mut out, json);
        assert_eq!(out.strip_prefix(b"before\n"), Some(expected));
    }
}

/// Bytes that are mostly letters and line ends, so that lines around the limit are common.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![4 => Just(b'x'), 2 => Just(b'\n'), 1 => Just(b'\r'), 1 => Just(b' '), 1 => any::<u8>()];
    prop::collection::vec(byte, 0..200)
}

proptest! {
    #[test]
    fn line_framer_yields_equal_lines_for_any_chunking(
        bytes in stream(),
        sizes in prop::collection::vec(0..12_usize, 1..8),
        limit in 0..12_usize,
    ) {
        let whole = lines_of(limit, &[&bytes]);
        prop_assert_eq!(lines_of(limit, &cut(&bytes, &sizes)), whole);
    }

    #[test]
    fn line_framer_agrees_with_splitting_the_whole_text(bytes in stream(), limit in 0..12_usize) {
        let expected: Vec<_> = bytes
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| line.len() > limit || !line.iter().all(|byte| b" \t\r".contains(byte)))
            .map(|line| if line.len() > limit { Err(LineTooLong { limit }) } else { Ok(Bytes::copy_from_slice(line)) })
            .collect();
        prop_assert_eq!(lines_of(limit, &[&bytes]), expected);
    }

    #[test]
    fn encoded_lines_round_trip(messages in prop::collection::vec(any::<Vec<u8>>(), 0..8)) {
        let mut out = Vec::new();
        for message in &messages {
            encode_line(&mut out, message);
        }
        let lines = out.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines, messages.len());
        prop_assert!(!out.contains(&b'\r'));
    }
}
