use std::ops::Range;

use crate::json::{JsonKind, JsonObject, JsonScanner, JsonWriter, MalformedJson, RawJson, ScannedKey};
use crate::meta;
use crate::method::Method;

use super::Dialect;
use super::conform::{self, ContentKinds};
use super::server_result::{CACHE_SCOPE, RESULT_TYPE, TTL};

/// The positions of the parts of a result in its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResultLayout {
    /// The contiguous end-to-end members.
    pub(super) members: Range<usize>,
    /// The value of `_meta`, if it has a member that is not hop-by-hop.
    pub(super) meta: Option<Range<usize>>,
    /// The JSON type of the structured content, if there is any.
    pub(super) structured: Option<JsonKind>,
    /// Whether the tool failed (`isError`).
    pub(super) is_error: bool,
    /// The kinds of content that not every revision has.
    pub(super) kinds: ContentKinds,
    /// The known members that are present, as a bit set of their indices in [`KNOWN`].
    seen: u16,
    /// Whether clients certainly accept every member that is present.
    is_certain: bool,
}

/// The known members of results; the hop-by-hop members, which each hop rewrites, come first.
const KNOWN: [&str; 11] = [
    "_meta",
    RESULT_TYPE,
    TTL,
    CACHE_SCOPE,
    "isError",
    "structuredContent",
    "content",
    "contents",
    "messages",
    "description",
    "completion",
];

/// The indices of some of them.
const META: usize = 0;
const IS_ERROR: usize = HOP_BY_HOP_COUNT;
const STRUCTURED: usize = HOP_BY_HOP_COUNT + 1;
const CONTENT: usize = HOP_BY_HOP_COUNT + 2;
const CONTENTS: usize = HOP_BY_HOP_COUNT + 3;
const MESSAGES: usize = HOP_BY_HOP_COUNT + 4;
const DESCRIPTION: usize = HOP_BY_HOP_COUNT + 5;
const COMPLETION: usize = HOP_BY_HOP_COUNT + 6;

/// The number of hop-by-hop members.
const HOP_BY_HOP_COUNT: usize = 4;

/// Returns the index of a key among the known members.
fn member_index(key: &str) -> Option<usize> {
    KNOWN.iter().position(|known| *known == key)
}

/// Reports whether a member is hop-by-hop, so that each hop rewrites it.
fn is_hop_by_hop(key: &str) -> bool {
    member_index(key).is_some_and(|index| index < HOP_BY_HOP_COUNT)
}

impl ResultLayout {
    /// Reads a result, and returns it with its end-to-end members made contiguous.
    ///
    /// # Errors
    /// The result is not an object, or two of its keys are equal.
    pub(super) fn of(result: RawJson) -> Result<(RawJson, Self), MalformedJson> {
        let mut scanner = JsonScanner::new(result.text(), JsonScanner::MAX_DEPTH);
        let shape = Self::walk(&mut scanner, 0);
        match shape.filter(|_| scanner.end().is_ok()) {
            Some(shape) => Ok((result, shape)),
            None => Ok(Self::arrange(&result.members()?)),
        }
    }

    /// Skips a result, and returns its layout if it has only known members and its end-to-end members are contiguous.
    /// Positions are relative to the beginning of the result's text.
    ///
    /// This runs once for every result, while it is read, so it allocates nothing per member.
    pub(super) fn walk(scanner: &mut JsonScanner<'_>, begin: usize) -> Option<Self> {
        if scanner.peek() != Some(b'{') {
            scanner.skip();
            return None;
        }
        scanner.open_object();
        let mut shape = Self::default();
        let (mut is_usual, mut is_first, mut seen, mut before) = (true, true, 0_u16, 0);
        while let Some(ScannedKey { start, index }) = scanner.next_known(is_first, &KNOWN) {
            is_first = false;
            let mark = index.map_or(0, |index| 1 << index);
            is_usual &= mark & !seen != 0;
            seen |= mark;
            match index {
                Some(META) => {
                    scanner.peek();
                    let start = scanner.at() - begin;
                    shape.meta = has_end_to_end_meta(scanner).then(|| start..scanner.at() - begin);
                }
                Some(index) => shape.note(index, scanner),
                None => {
                    scanner.skip();
                }
            }
            let end = scanner.at() - begin;
            if index.is_some_and(|index| index >= HOP_BY_HOP_COUNT) {
                match shape.members.is_empty() {
                    true => shape.members.start = start - begin,
                    false => is_usual &= shape.members.end == before,
                }
                shape.members.end = end;
            }
            before = end;
        }
        shape.seen = seen;
        shape.is_certain &= !scanner.is_suspicious();
        is_usual.then_some(shape)
    }

    /// Rewrites any other result so that its end-to-end members are contiguous.
    fn arrange(members: &JsonObject) -> (RawJson, Self) {
        let mut shape = Self::default();
        let mut writer = JsonWriter::with_capacity(256);
        writer.open_object();
        let start = writer.len();
        for (key, value) in members.iter().filter(|(key, _)| !is_hop_by_hop(key)) {
            let mut scanner = JsonScanner::new(value.text(), JsonScanner::MAX_DEPTH);
            match member_index(key) {
                Some(index) => {
                    shape.seen |= 1 << index;
                    shape.note(index, &mut scanner);
                }
                None => {
                    scanner.skip();
                }
            }
            shape.is_certain &= !scanner.is_suspicious();
            writer.member(key, value);
        }
        shape.members = start..writer.len();
        for (key, value) in members.iter().filter(|(key, _)| is_hop_by_hop(key)) {
            writer.member(key, value);
            if member_index(key) == Some(META)
                && has_end_to_end_meta(&mut JsonScanner::new(value.text(), JsonScanner::MAX_DEPTH))
            {
                shape.meta = Some(writer.len() - value.as_str().len()..writer.len());
            }
        }
        writer.close_object();
        (writer.into_raw(), shape)
    }

    /// Skips the value of a member, and records what matters of it.
    fn note(&mut self, index: usize, scanner: &mut JsonScanner<'_>) {
        self.is_certain &= match index {
            IS_ERROR => {
                let value = scanner.value_text();
                self.is_error = value == Some("true");
                self.is_error || value == Some("false")
            }
            STRUCTURED => {
                self.structured = Some(JsonKind::of(scanner.value_text().unwrap_or_default()));
                true
            }
            CONTENT => conform::content(scanner, &mut self.kinds),
            CONTENTS => conform::contents(scanner),
            MESSAGES => conform::messages(scanner, &mut self.kinds),
            DESCRIPTION => conform::text(scanner),
            COMPLETION => conform::completion(scanner),
            _ => {
                scanner.skip();
                true
            }
        };
    }

    /// Reports whether clients certainly accept this as the result of a method, from a server of a dialect.
    pub(super) fn conforms(&self, method: Method, from: &Dialect) -> bool {
        let required = match method {
            Method::ToolsCall => CONTENT,
            Method::PromptsGet => MESSAGES,
            Method::ResourcesRead => CONTENTS,
            Method::Complete => COMPLETION,
            _ => return true,
        };
        // Where structured content is an object, `null` means none.
        let is_null_object = self.structured == Some(JsonKind::Null) && !from.structured_any;
        self.is_certain && self.seen & 1 << required != 0 && !is_null_object
    }
}

impl Default for ResultLayout {
    fn default() -> Self {
        Self {
            members: 0..0,
            meta: None,
            structured: None,
            is_error: false,
            kinds: ContentKinds::default(),
            seen: 0,
            is_certain: true,
        }
    }
}

/// Skips the value of `_meta`, and reports whether it has an end-to-end member; an empty one counts as end-to-end.
fn has_end_to_end_meta(scanner: &mut JsonScanner<'_>) -> bool {
    if scanner.peek() != Some(b'{') {
        scanner.skip();
        return false;
    }
    scanner.open_object();
    let (mut is_empty, mut has_others) = (true, false);
    while let Some(ScannedKey { index, .. }) = scanner.next_known(is_empty, &meta::HOP_BY_HOP) {
        is_empty = false;
        has_others |= index.is_none();
        scanner.skip();
    }
    is_empty || has_others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_layout_is_found_in_any_member_order() {
        for (result, members, meta, is_error) in [
            ("{}", "", None, false),
            (r#"{"content":[],"isError":true}"#, r#""content":[],"isError":true"#, None, true),
            (
                r#" { "isError" : true , "content": [1] } "#,
                r#""isError" : true , "content": [1]"#,
                None,
                true,
            ),
            (
                r#"{"resultType":"complete","content":[],"_meta":{"a":1}}"#,
                r#""content":[]"#,
                Some(r#"{"a":1}"#),
                false,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"a":{}}},"content":[]}"#,
                r#""content":[]"#,
                None,
                false,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{},"progressToken":1,"b":2},"content":[]}"#,
                r#""content":[]"#,
                Some(r#"{"io.modelcontextprotocol/serverInfo":{},"progressToken":1,"b":2}"#),
                false,
            ),
            (r#"{"_meta":{}}"#, "", Some("{}"), false),
            (r#"{"_meta":7,"content":[]}"#, r#""content":[]"#, None, false),
            // Hop-by-hop members between others, or unknown members.
            (
                r#"{"content":[],"_meta":{"a":1},"isError":true,"ttlMs":1}"#,
                r#""content":[],"isError":true"#,
                Some(r#"{"a":1}"#),
                true,
            ),
            (
                r#"{"x":1,"resultType":"complete","y":{"isError":true}}"#,
                r#""x":1,"y":{"isError":true}"#,
                None,
                false,
            ),
            (r#"{"isErr\u006fr":true}"#, r#""isErr\u006fr":true"#, None, true),
            (r#"{"x":1,"isErr\u006fr":true}"#, r#""x":1,"isError":true"#, None, true),
        ] {
            let (text, shape) = ResultLayout::of(RawJson::parse(result).unwrap()).unwrap();
            let text = text.as_str();
            assert_eq!(text.get(shape.members), Some(members), "{result}");
            assert_eq!(shape.meta.and_then(|meta| text.get(meta)), meta, "{result}");
            assert_eq!(shape.is_error, is_error, "{result}");
        }
    }

    #[test]
    fn non_objects_and_duplicate_keys_have_no_result_layout() {
        for (result, problem) in [
            ("[]", MalformedJson::NotAnObject),
            ("7", MalformedJson::NotAnObject),
            (r#"{"content":[],"content":[]}"#, MalformedJson::Duplicate("content".to_owned())),
            (r#"{"content":[],"c\u006fntent":[]}"#, MalformedJson::Duplicate("content".to_owned())),
            (r#"{"x":1,"x":1}"#, MalformedJson::Duplicate("x".to_owned())),
        ] {
            assert_eq!(ResultLayout::of(RawJson::parse(result).unwrap()), Err(problem), "{result}");
        }
    }

    #[test]
    fn result_layout_records_the_type_of_structured_content() {
        for (result, kind) in [
            (r#"{"content":[]}"#, None),
            (r#"{"structuredContent":{"a":1}}"#, Some(JsonKind::Object)),
            (r#"{"structuredContent": [1]}"#, Some(JsonKind::Array)),
            (r#"{"x":1,"structuredContent":null}"#, Some(JsonKind::Null)),
        ] {
            assert_eq!(
                ResultLayout::of(RawJson::parse(result).unwrap()).unwrap().1.structured,
                kind,
                "{result}"
            );
        }
    }
}
