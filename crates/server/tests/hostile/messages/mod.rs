//! Messages that are wrong, or at the edge of being wrong, each with the one answer that is right.

mod envelopes;
mod requests;
mod syntax;

pub(crate) use self::requests::ABSENT;

/// What a message gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedReply {
    /// An error with this code and, over HTTP, this status.
    Refused(i64, u16),
    /// A result.
    Answered,
    /// No answer: 202 over HTTP, silence on a channel.
    Accepted,
}

/// One message and its responses: over HTTP as a modern request, over HTTP in a legacy session, and on a channel with
/// a legacy session.
#[derive(Clone, Debug)]
pub(crate) struct MessageCase {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The id with which the answer comes, as the token that was sent; without one the answer has none, or null.
    pub(crate) id: Option<String>,
    /// Headers that replace the usual modern ones.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) modern: Option<ExpectedReply>,
    pub(crate) legacy: Option<ExpectedReply>,
    pub(crate) channel: Option<ExpectedReply>,
}

impl MessageCase {
    fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let (name, bytes) = (name.into(), bytes.into());
        Self { name, bytes, id: None, headers: Vec::new(), modern: None, legacy: None, channel: None }
    }

    /// A good message under a header that names no revision.
    pub(crate) fn unknown_version() -> Self {
        Self::new("an unknown version in the header", "").id(r#""after""#)
    }

    /// Reports whether the row applies to a revision: one of them has batches, with tests of their own.
    pub(crate) fn is_in(&self, revision: &str) -> bool {
        revision != "2025-03-26" || self.bytes.trim_ascii_start().first() != Some(&b'[')
    }

    /// Expects the same reply over every transport.
    fn everywhere(self, expect: ExpectedReply) -> Self {
        Self { modern: Some(expect), legacy: Some(expect), channel: Some(expect), ..self }
    }

    fn modern(self, expect: ExpectedReply) -> Self {
        Self { modern: Some(expect), ..self }
    }

    fn legacy(self, expect: ExpectedReply) -> Self {
        Self { legacy: Some(expect), ..self }
    }

    fn channel(self, expect: ExpectedReply) -> Self {
        Self { channel: Some(expect), ..self }
    }

    fn on_http_only(self) -> Self {
        Self { channel: None, ..self }
    }

    fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

const NOT_JSON: ExpectedReply = ExpectedReply::Refused(-32700, 400);
const NOT_A_MESSAGE: ExpectedReply = ExpectedReply::Refused(-32600, 400);
const BAD_PARAMS: ExpectedReply = ExpectedReply::Refused(-32602, 200);

/// Returns the whole table.
pub(crate) fn table() -> Vec<MessageCase> {
    [syntax::rows(), envelopes::rows(), requests::rows(), requests::header_rows()].concat()
}

#[test]
fn malformed_message_table_is_large_and_without_duplicates() {
    let rows = table();
    let distinct: std::collections::HashSet<_> = rows.iter().map(|row| (&row.bytes, &row.headers)).collect();
    assert_eq!(distinct.len(), rows.len());
    assert!(rows.len() >= 120, "{}", rows.len());
}
