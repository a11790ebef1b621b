//! Messages as peers send them.

use bytes::Bytes;
use serde_json::value::RawValue;
use trunkline_protocol::envelope::{self, MalformedMessage, Message, MessageLimits, MessageOrBatch, Params};
use trunkline_protocol::{RawJson, Revision, emit};

/// No answer to a message that is refused is longer than this, beside the id that it repeats.
const MOST_ANSWER: usize = 2048;

/// Reads any bytes as a message; what is read is JSON, keeps its id byte for byte, and is read the same once written
/// again. What is refused is answered with a short message that is JSON itself.
pub fn envelope(data: &[u8]) {
    let bounds = MessageLimits::default();
    match envelope::read(Bytes::copy_from_slice(data), bounds) {
        Err(malformed) => check_refusal(&malformed),
        Ok(MessageOrBatch::One(message)) => {
            assert!(serde_json::from_slice::<&RawValue>(data).is_ok(), "another parser refuses it");
            check_message(&message, data);
        }
        Ok(MessageOrBatch::Batch(messages)) => {
            assert!(serde_json::from_slice::<Vec<&RawValue>>(data).is_ok(), "another parser refuses it");
            assert!((1..=bounds.batch).contains(&messages.len()));
            for message in &messages {
                match message {
                    Ok(message) => check_message(message, data),
                    Err(malformed) => check_refusal(malformed),
                }
            }
        }
    }
}

fn check_refusal(malformed: &MalformedMessage) {
    for revision in [Revision::NEWEST, Revision::NEWEST_LEGACY, Revision::V2024_11_05] {
        let answer = emit::error(malformed.id.as_ref(), &malformed.refusal, revision);
        assert!(serde_json::from_str::<&RawValue>(&answer).is_ok(), "{answer}");
        let id = malformed.id.as_ref().map_or(0, |id| id.to_string().len());
        assert!(answer.len() <= MOST_ANSWER + id, "{} bytes", answer.len());
    }
}

fn check_message(message: &Message, data: &[u8]) {
    let Message::Request(request) = message else { return };
    let id = &request.id.to_string();
    assert!(data.windows(id.len()).any(|window| window == id.as_bytes()), "{id} is not what was sent");
    let params = whole(&request.params);
    let written = emit::request(&request.id, &request.method, Some(&params));
    let again = match envelope::read(Bytes::from(written.clone()), MessageLimits::default()) {
        Ok(MessageOrBatch::One(Message::Request(again))) => again,
        other => panic!("{written} is read as {other:?}"),
    };
    assert_eq!(again.id, request.id);
    assert_eq!(again.method, request.method);
    assert_eq!(whole(&again.params), params);
}

/// Puts the parameters together again, `_meta` last.
fn whole(params: &Params) -> RawJson {
    let mut members = params.members.clone();
    if let Some(meta) = &params.meta {
        members.set("_meta", meta.to_raw());
    }
    members.to_raw()
}
