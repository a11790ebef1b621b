use bytes::Bytes;
use proptest::prelude::*;
use trunkline_protocol::sse::{SseDecoder, SseEvent, write_comment, write_event, write_priming, write_retry};

fn decode(stream: &[u8]) -> Vec<SseEvent> {
    let mut decoder = SseDecoder::new(1 << 20);
    let mut input = stream;
    std::iter::from_fn(|| decoder.next_event(&mut input)).map(Result::unwrap).collect()
}

#[test]
fn sse_events_are_written_field_by_field() {
    type Row = (Option<&'static str>, Option<&'static str>, &'static [u8], &'static str);
    let table: [Row; 7] = [
        (None, None, b"{}", "data: {}\n\n"),
        (Some("endpoint"), None, b"/messages", "event: endpoint\ndata: /messages\n\n"),
        (Some("message"), Some("s1/2"), b"{}", "event: message\nid: s1/2\ndata: {}\n\n"),
        (Some(""), Some(""), b"", "id: \ndata: \n\n"),
        (None, None, b"a\nb\r\nc\rd\n", "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        (Some("a\n\ndata: x"), None, b"y", "event: adata: x\ndata: y\n\n"),
        (None, Some("1\r\n\0data: x"), b"y", "id: 1data: x\ndata: y\n\n"),
    ];
    for (event, id, data, expected) in table {
        let mut out = Vec::new();
        write_event(&mut out, event, id, data);
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

#[test]
fn sse_priming_retry_and_comment_have_their_own_form() {
    let mut out = Vec::new();
    write_priming(&mut out, "s1/0", Some(500));
    write_priming(&mut out, "s\n2", None);
    write_retry(&mut out, u64::MAX);
    write_comment(&mut out, "keep\n\ndata: alive");
    let expected = "id: s1/0\nretry: 500\ndata: \n\nid: s2\ndata: \n\n\
                    retry: 18446744073709551615\n\n: keepdata: alive\n\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

/// What a reader makes of data: every line end becomes `\n`.
fn normalized(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = data;
    while let [first, after @ ..] = rest {
        rest = if *first == b'\r' { after.strip_prefix(b"\n").unwrap_or(after) } else { after };
        out.push(if *first == b'\r' { b'\n' } else { *first });
    }
    out
}

fn without(text: &str, unwanted: &[char]) -> String {
    text.chars().filter(|character| !unwanted.contains(character)).collect()
}

/// Bytes in which line ends and field names are common.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> =
        vec![b"\r", b"\n", b"data: ", b"id: 1", b"event:", b":", b" ", b"\0", b"\xEF\xBB\xBF"];
    let word = prop_oneof![3 => prop::sample::select(words).prop_map(<[u8]>::to_vec), 1 => any::<Vec<u8>>()];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

fn hostile_text() -> impl Strategy<Value = String> {
    hostile_bytes().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

proptest! {
    #[test]
    fn any_written_sse_event_decodes_to_exactly_one(
        event in prop::option::of(hostile_text()),
        id in prop::option::of(hostile_text()),
        data in hostile_bytes(),
    ) {
        let mut out = Vec::new();
        write_event(&mut out, event.as_deref(), id.as_deref(), &data);
        let name = event.map(|name| without(&name, &['\r', '\n', '\0'])).filter(|name| !name.is_empty());
        let expected = SseEvent {
            event: name,
            id: id.map(|id| without(&id, &['\r', '\n', '\0'])),
            retry_ms: None,
            data: Some(Bytes::from(normalized(&data))),
        };
        prop_assert_eq!(decode(&out), vec![expected]);
    }

    #[test]
    fn sse_comment_never_decodes_to_an_event(text in hostile_text()) {
        let mut out = Vec::new();
        write_comment(&mut out, &text);
        prop_assert_eq!(decode(&out), vec![]);
    }

    #[test]
    fn sse_priming_event_round_trips(id in hostile_text(), retry_ms in any::<Option<u64>>()) {
        let mut out = Vec::new();
        write_priming(&mut out, &id, retry_ms);
        let id = Some(without(&id, &['\r', '\n', '\0']));
        prop_assert_eq!(decode(&out), vec![SseEvent { event: None, id, retry_ms, data: Some(Bytes::new()) }]);
    }
}
