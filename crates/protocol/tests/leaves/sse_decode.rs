use bytes::{Buf, Bytes};
use proptest::prelude::*;
use trunkline_protocol::RequestId;
use trunkline_protocol::envelope::OversizedMessage;
use trunkline_protocol::sse::{EventTooLarge, SseDecoder, SseEvent};

use crate::chunks::cut;

fn events_of(limit: usize, pieces: &[&[u8]]) -> Vec<Result<SseEvent, EventTooLarge>> {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        events.extend(std::iter::from_fn(|| decoder.next_event(&mut input)));
        assert!(input.is_empty(), "a decoder that asks for more has used everything up");
    }
    events
}

/// Writes one event as `name#id@retry:data`, leaving out what it does not have.
fn show(event: &SseEvent) -> String {
    let mut text = event.event.clone().unwrap_or_default();
    if let Some(id) = &event.id {
        text += &format!("#{id}");
    }
    if let Some(retry_ms) = event.retry_ms {
        text += &format!("@{retry_ms}");
    }
    if let Some(data) = &event.data {
        text += &format!(":{}", String::from_utf8_lossy(data));
    }
    text
}

fn outcome(limit: usize, input: &[u8]) -> Vec<String> {
    let shown =
        |event: &Result<SseEvent, EventTooLarge>| event.as_ref().map_or_else(|_| "!".to_owned(), show);
    events_of(limit, &[input]).iter().map(shown).collect()
}

#[test]
fn sse_decoder_follows_the_standard_for_fields() {
    let table: [(&[u8], &[&str]); 28] = [
        (b"", &[]),
        (b"data: a\n\n", &[":a"]),
        (b"data:a\n\n", &[":a"]),
        (b"data:  a \n\n", &[": a "]),
        (b"data\n\n", &[":"]),
        (b"data:\n\n", &[":"]),
        (b"data: a\r\n\r\n", &[":a"]),
        (b"data: a\r\r", &[":a"]),
        (b"data: a\r\n\ndata: b\n\r\n", &[":a", ":b"]),
        (b"data: a\ndata: b\ndata\ndata: c\n\n", &[":a\nb\n\nc"]),
        (b"event: e\nid: 1\nretry: 20\ndata: a\n\n", &["e#1@20:a"]),
        (b"event: e\nevent: f\nid: 1\nid: 2\ndata: a\n\n", &["f#2:a"]),
        (b"event:\ndata: a\n\n", &[":a"]),
        (b"event: e\n\ndata: a\n\n", &[":a"]),
        (b"id: 1\n\n", &["#1"]),
        (b"id\ndata: a\n\n", &["#:a"]),
        (b"id: a\0b\ndata: a\n\n", &[":a"]),
        (b"id: 1\nid: a\0b\ndata: a\n\n", &["#1:a"]),
        (b"retry: 5\n\n", &["@5"]),
        (b"retry: +5\nretry: 5s\nretry:\nretry: -1\ndata: a\n\n", &[":a"]),
        (b"retry: 18446744073709551616\ndata: a\n\n", &[":a"]),
        (b": comment\n\n:\n\ndata: a\n:between\ndata: b\n\n", &[":a\nb"]),
        (b"other: x\nDATA: x\n data: x\ndata: a\n\n", &[":a"]),
        (b"\n\n\r\n\r\rdata: a\n\n\n\n", &[":a"]),
        (b"data: a\n\ndata: cut off\n", &[":a"]),
        (b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n", &[":a"]),
        (b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", &[]),
        (b"\xEF\xBBdata: a\n\ndata: b\n\n", &[":b"]),
    ];
    for (input, expected) in table {
        assert_eq!(outcome(1000, input), expected, "input {:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn sse_decoder_distinguishes_empty_data_from_none() {
    let events = events_of(100, &[b"id: 1\ndata:\n\nretry: 5\n\n"]);
    let kinds: Vec<_> = events.iter().map(|event| event.as_ref().unwrap().has_data()).collect();
    assert_eq!(kinds, [true, false]);
}

#[test]
fn sse_decoder_rejects_a_large_event_and_continues() {
    let table: [(&[u8], &[&str]); 8] = [
        (b"data: 123456\n\n", &[":123456"]),
        (b"data: 1234567\n\ndata: a\n\n", &["!", ":a"]),
        (b"data: 1234567890\ndata: 1\nid: 1234567890\n\ndata: a\n\n", &["!", ":a"]),
        (b"data:1\ndata:2\ndata:3\ndata:4\n\n", &[":1\n2\n3\n4"]),
        (b"data:1\ndata:2\ndata:3\ndata:4\ndata:5\n\ndata: a\n\n", &["!", ":a"]),
        (b"id:123456\nevent:1\ndata:1\n\nid: 1\n\n", &["!", "#1"]),
        (b": a comment of any length is no event\ndata: a\n\n", &[":a"]),
        (b"unknown field: long\n\ndata: a\n\n", &["!", ":a"]),
    ];
    for (input, expected) in table {
        assert_eq!(outcome(12, input), expected, "input {:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn rejected_event_is_searched_to_its_end_for_the_request_that_it_answers() {
    let text = "x".repeat(100 << 10);
    let message = format!(r#"{{"result":{{"text":"{text}","id":9}},{{LINE}}"jsonrpc":"2.0","id":7}}"#);
    for line in ["", "\ndata:", "\nid: 8\n:comment\ndata: "] {
        for size in [1, 7, 4 << 10, 1 << 20] {
            let stream =
                format!("event: message\ndata: {}\n\ndata: next\n\n", message.replace("{LINE}", line));
            let mut decoder = SseDecoder::new(1 << 10);
            let mut events = Vec::new();
            for mut piece in stream.as_bytes().chunks(size) {
                events.extend(std::iter::from_fn(|| decoder.next_event(&mut piece)));
            }
            assert_eq!(events.len(), 2, "in pieces of {size}");
            assert_eq!(events[0], Err(EventTooLarge { limit: 1 << 10 }));
            assert_eq!(
                decoder.take_oversized(),
                OversizedMessage::Response(RequestId::from_number(7)),
                "{line:?}"
            );
        }
    }
}

#[test]
fn sse_decoder_rejects_an_endless_event_within_its_memory_limit() {
    let mut decoder = SseDecoder::new(1000);
    let mut refused = 0;
    for _ in 0..10_000 {
        let mut piece = &b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"[..];
        refused += usize::from(decoder.next_event(&mut piece).is_some());
    }
    assert_eq!(refused, 1);
    let mut end = &b"\n\ndata: a\n\n"[..];
    let event = decoder.next_event(&mut end).unwrap().unwrap();
    assert_eq!(event.data, Some(Bytes::from_static(b"a")));
}

#[test]
fn sse_decoder_reads_from_chained_buffers() {
    let mut input =
        Bytes::from_static(b"da").chain(Bytes::from_static(b"ta: a\n\nd")).chain(&b"ata: b\n\n"[..]);
    let mut decoder = SseDecoder::new(100);
    let events: Vec<_> = std::iter::from_fn(|| decoder.next_event(&mut input)).map(Result::unwrap).collect();
    let data: Vec<_> = events.iter().filter_map(|event| event.data.as_deref()).collect();
    assert_eq!(data, [b"a", b"b"]);
}

/// Streams made of fields, line ends and noise, so that events are common.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"data",
        b"event",
        b"id",
        b"retry",
        b":",
        b": ",
        b"\n",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\xEF\xBB\xBF",
        b"7",
        b"x",
        b"\0",
        b" ",
    ];
    let word = prop_oneof![9 => prop::sample::select(words).prop_map(<[u8]>::to_vec), 1 => any::<Vec<u8>>()];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn sse_decoder_yields_equal_events_for_any_chunking(
        bytes in stream(),
        sizes in prop::collection::vec(0..9_usize, 1..8),
        limit in 0..40_usize,
    ) {
        let whole = events_of(limit, &[&bytes]);
        prop_assert_eq!(events_of(limit, &cut(&bytes, &sizes)), whole);
    }

    #[test]
    fn sse_decoder_never_delivers_more_than_the_limit(bytes in stream(), limit in 0..40_usize) {
        for event in events_of(limit, &[&bytes]).into_iter().flatten() {
            let data = event.data.map_or(0, |data| data.len());
            prop_assert!(data <= limit);
        }
    }
}
