//! Which request a message answers, found while its bytes pass by, in memory that does not depend on its length.

use memchr::memchr2;

use crate::request_id::RequestId;

/// The bytes of a message over its limit that are searched; a longer one counts as one that answers no known request.
const MAX_SEARCHED_BYTES: usize = 64 << 20;

/// The longest key that counts, `jsonrpc`, and one byte more, so that a longer key is not mistaken for it.
const KEY_BYTES: usize = 8;

/// The longest id that our client writes, and one byte more.
const ID_BYTES: usize = 21;

/// Looks for the outermost members that show what a message is; whatever is nested in them is passed over.
///
/// The message may be cut off, not UTF-8 or not JSON.
#[derive(Debug, Default)]
pub(crate) struct MemberSearch {
    place: ScanPlace,
    depth: usize,
    /// The last string of the outermost object, which is a key if a colon follows.
    key: ShortText<KEY_BYTES>,
    /// The value of the member `id`, while it is read.
    id_text: Option<ShortText<ID_BYTES>>,
    searched: usize,
    pub(super) members: FoundMembers,
}

/// What a message is that was longer than its limit, of which the outermost members alone were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OversizedMessage {
    /// The response to this request.
    Response(RequestId),
    /// A request, a notification, or a response with an id such as our client never writes.
    Other,
    /// It does not show what it is.
    #[default]
    Unknown,
}

/// What the outermost members show.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundMembers {
    pub(super) id: Option<RequestId>,
    pub(super) has_id: bool,
    pub(super) has_version: bool,
    pub(super) has_outcome: bool,
    pub(super) has_method: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScanPlace {
    /// Before the first byte that is not white space.
    #[default]
    Start,
    /// Between tokens, or within a number or literal.
    Structure,
    /// Behind a string of the outermost object.
    AfterString,
    InString,
    /// Behind a backslash within a string.
    Escaped,
    /// The message is no object.
    NoObject,
}

impl MemberSearch {
    /// Reads the next bytes of the message.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.searched = self.searched.saturating_add(bytes.len());
        while let Some((byte, rest)) = bytes.split_first() {
            match self.place {
                ScanPlace::NoObject => return,
                ScanPlace::InString => {
                    bytes = self.pass_string(bytes);
                    continue;
                }
                ScanPlace::Escaped => {
                    self.key.push(&[*byte]);
                    self.place = ScanPlace::InString;
                }
                ScanPlace::Start if byte.is_ascii_whitespace() => {}
                ScanPlace::Start if *byte != b'{' => self.place = ScanPlace::NoObject,
                ScanPlace::Start | ScanPlace::Structure | ScanPlace::AfterString => self.pass_token(*byte),
            }
            bytes = rest;
        }
    }

    /// Reports whether the search may end: further bytes cannot change what the message is, or were too many already.
    pub(crate) fn is_settled(&self) -> bool {
        let FoundMembers { id, has_method, has_outcome, .. } = &self.members;
        let is_known = *has_method || (id.is_some() && *has_outcome);
        is_known || self.place == ScanPlace::NoObject || self.searched > MAX_SEARCHED_BYTES
    }

    /// Returns what the message is.
    pub(crate) fn outcome(&self) -> OversizedMessage {
        let FoundMembers { id, has_id, has_version, has_outcome, has_method } = &self.members;
        match id {
            _ if *has_method => OversizedMessage::Other,
            Some(id) if *has_outcome || *has_version => OversizedMessage::Response(id.clone()),
            None if *has_id && self.id_text.is_none() => OversizedMessage::Other,
            _ => OversizedMessage::Unknown,
        }
    }

    /// Passes the bytes of a string up to its end or an escape; returns the bytes behind them.
    fn pass_string<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = memchr2(b'"', b'\\', bytes);
        let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.key.push(text);
        let Some((ending, rest)) = rest.split_first() else { return rest };
        self.place = match ending {
            b'\\' => {
                self.key.push(b"\\");
                ScanPlace::Escaped
            }
            _ if self.depth == 1 => ScanPlace::AfterString,
            _ => ScanPlace::Structure,
        };
        rest
    }

    fn pass_token(&mut self, byte: u8) {
        if self.depth == 1 {
            self.pass_outermost(byte);
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b'"' => {
                self.key.clear();
                self.place = ScanPlace::InString;
                return;
            }
            _ => {}
        }
        if self.place == ScanPlace::Start || !byte.is_ascii_whitespace() {
            self.place = ScanPlace::Structure;
        }
    }

    /// Looks at a byte between the strings of the outermost object.
    fn pass_outermost(&mut self, byte: u8) {
        if let Some(text) = &mut self.id_text {
            match byte {
                b'0'..=b'9' if !text.is_ended => text.push(&[byte]),
                b',' | b'}' => {
                    self.members.id = text.number();
                    self.id_text = None;
                }
                _ if byte.is_ascii_whitespace() => text.is_ended = !text.is_empty(),
                // It is no whole number.
                _ => self.id_text = None,
            }
            return;
        }
        if byte == b':' && self.place == ScanPlace::AfterString {
            self.begin_member();
        }
    }

    fn begin_member(&mut self) {
        match self.key.text() {
            Some(b"jsonrpc") => self.members.has_version = true,
            Some(b"result" | b"error") => self.members.has_outcome = true,
            Some(b"method") => self.members.has_method = true,
            Some(b"id") => {
                self.members.has_id = true;
                self.members.id = None;
                self.id_text = Some(ShortText::default());
            }
            _ => {}
        }
    }
}

/// The beginning of a text, which is whole if it is shorter than `N`.
#[derive(Debug)]
struct ShortText<const N: usize> {
    bytes: [u8; N],
    length: usize,
    /// Whether nothing may follow.
    is_ended: bool,
}

impl<const N: usize> Default for ShortText<N> {
    fn default() -> Self {
        Self { bytes: [0; N], length: 0, is_ended: false }
    }
}

impl<const N: usize> ShortText<N> {
    fn clear(&mut self) {
        *self = Self::default();
    }

    fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn push(&mut self, text: &[u8]) {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let fits = room.len().min(text.len());
        for (to, from) in room.iter_mut().zip(text) {
            *to = *from;
        }
        self.length += fits;
    }

    /// Returns the text, if it is not too long.
    fn text(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length).filter(|text| text.len() < N)
    }

    fn number(&self) -> Option<RequestId> {
        let text = std::str::from_utf8(self.text()?).ok()?;
        text.parse().ok().map(RequestId::from_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_message_is_recognised_by_its_outermost_members_in_any_pieces() {
        use OversizedMessage::{Other, Unknown};
        let answers = |id| OversizedMessage::Response(RequestId::from_number(id));
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#, answers(7)),
            (r#" {"result":{"id":9,"text":"\"},\"id\":8"},"jsonrpc":"2.0", "id" : 7 }"#, answers(7)),
            (r#"{"error":{"code":1},"other":[{"id":1}],"id":18446744073709551615}"#, answers(u64::MAX)),
            (r#"{"result":"id","x":"id","id":7}"#, answers(7)),
            (r#"{"jsonrpc":"2.0","params":{"id":9},"id":7,"method":"ping"}"#, Other),
            (r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"id":7}}"#, Other),
            (r#"{"result":{},"id":"7"}"#, Other),
            (r#"{"result":{},"id":7.5}"#, Other),
            (r#"{"result":{},"id":1 2}"#, Other),
            (r#"{"result":{},"id":184467440737095516150}"#, Other),
            (r#"{"result":{},"id":null}"#, Other),
            (r#"{"result":{"id":7}}"#, Unknown),
            (r#"{"level":"info","id":7}"#, Unknown),
            (r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#, Unknown),
            ("listening on port 7", Unknown),
            ("", Unknown),
        ] {
            for size in 1..=text.len().max(1) {
                let mut search = MemberSearch::default();
                text.as_bytes().chunks(size).for_each(|piece| search.push(piece));
                assert_eq!(search.outcome(), expected, "{text} in pieces of {size}");
            }
        }
    }

    #[test]
    fn search_ends_as_soon_as_the_message_is_known() {
        for (text, is_settled) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"text":"and mo"#, true),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"te"#, true),
            (r#"{"result":{"id":7,"#, false),
            (r#"{"jsonrpc":"2.0","id":7,"#, false),
            ("7", true),
            (" ", false),
        ] {
            let mut search = MemberSearch::default();
            search.push(text.as_bytes());
            assert_eq!(search.is_settled(), is_settled, "{text}");
        }
        let mut endless = MemberSearch::default();
        endless.push(b"{\"result\":\"");
        let piece = vec![b'x'; 1 << 20];
        let pushed = (0..).take_while(|_| {
            endless.push(&piece);
            !endless.is_settled()
        });
        assert_eq!(pushed.count(), (MAX_SEARCHED_BYTES >> 20) - 1, "nothing is searched without end");
    }
}
