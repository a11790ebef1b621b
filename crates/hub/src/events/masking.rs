//! What of a message may be shown.
//!
//! Arguments, results and errors are the users' data and stay. Of `_meta`, at any depth, only known members stay;
//! encrypted state and the addresses of URL elicitations, which may be secret links, never do.

use std::borrow::Cow;

/// Replaces a value that is not shown.
pub(super) const MASKED: &str = "\"[masked]\"";

/// The members of `_meta` that are shown, apart from those in `io.modelcontextprotocol/`.
const SHOWN_META: [&str; 8] = [
    "progressToken",
    "traceparent",
    "ui",
    "ui/resourceUri",
    "fastmcp",
    "_fastmcp",
    "trunkline/source",
    "trunkline/via",
];

/// The prefix of the specification's own members of `_meta`.
const OWN_PREFIX: &str = "io.modelcontextprotocol/";

/// Members that are never shown, wherever they are.
const HIDDEN: [&str; 1] = ["requestState"];

/// The kind of a value around the current position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonScope {
    Array,
    Object,
    Meta,
}

/// The part before the token in a link to the page on which a user logs in to a server.
const LINK: &str = "/connect/";

/// Copies a message without what may not be shown. The text may be the beginning of a message.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let shown = without_hidden_members(text);
    match shown.contains(LINK) {
        true => Cow::Owned(without_link_tokens(&shown)),
        false => shown,
    }
}

/// Masks what follows in a link to a login page.
fn without_link_tokens(text: &str) -> String {
    let mut parts = text.split(LINK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let token = part.bytes().take_while(is_token).count();
        out.push_str(LINK);
        match part.get(token..) {
            Some(rest) if token >= MIN_TOKEN => {
                out.push_str("[masked]");
                out.push_str(rest);
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// The shortest token of a link.
const MIN_TOKEN: usize = 32;

fn without_hidden_members(text: &str) -> Cow<'_, str> {
    let hides_urls = text.contains("elicitation");
    let mut cursor = MaskCursor { text, at: 0, copied: 0, out: String::new() };
    let mut scopes: Vec<JsonScope> = Vec::new();
    let (mut expects_key, mut is_meta_next) = (false, false);
    while let Some(byte) = cursor.byte(cursor.at) {
        match byte {
            b'"' => {
                let start = cursor.at;
                cursor.at = cursor.end_of_string(start);
                if !std::mem::take(&mut expects_key) {
                    continue;
                }
                let key = unquoted(cursor.between(start, cursor.at));
                cursor.at = cursor.start_of_value(cursor.at);
                let is_hidden = match scopes.last() {
                    Some(JsonScope::Meta) => !is_shown_meta(&key),
                    _ => HIDDEN.contains(&&*key) || (hides_urls && &*key == "url"),
                };
                if is_hidden {
                    cursor.replace_value();
                } else {
                    is_meta_next = &*key == "_meta";
                }
                continue;
            }
            b'{' => {
                let is_meta = std::mem::take(&mut is_meta_next);
                scopes.push(if is_meta { JsonScope::Meta } else { JsonScope::Object });
                expects_key = true;
            }
            b'[' => {
                scopes.push(JsonScope::Array);
                (expects_key, is_meta_next) = (false, false);
            }
            b'}' | b']' => {
                scopes.pop();
                expects_key = false;
            }
            b',' => expects_key = scopes.last().is_some_and(|scope| *scope != JsonScope::Array),
            _ => {}
        }
        cursor.at += 1;
    }
    cursor.finish()
}

/// A position in a message, and what was copied of it.
struct MaskCursor<'a> {
    text: &'a str,
    at: usize,
    /// Up to where the text is copied, or was left out.
    copied: usize,
    out: String,
}

impl<'a> MaskCursor<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the position after the string that begins here.
    fn end_of_string(&self, start: usize) -> usize {
        let mut at = start + 1;
        loop {
            match self.byte(at) {
                Some(b'"') => return at + 1,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return self.text.len(),
            }
        }
    }

    /// Returns the position of the value after a key.
    fn start_of_value(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), Some(b':' | b' ' | b'\t' | b'\r' | b'\n')) {
            at += 1;
        }
        at
    }

    /// Leaves out the value that begins here.
    fn replace_value(&mut self) {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.byte(self.at) {
                None => break,
                Some(b'"') => self.at = self.end_of_string(self.at),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']' | b',') if depth == 0 => break,
                Some(b'}' | b']') => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(_) => self.at += 1,
            }
        }
        self.out.push_str(self.between(self.copied, start));
        self.out.push_str(MASKED);
        self.copied = self.at;
    }

    fn finish(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(self.between(self.copied, self.text.len()));
        Cow::Owned(self.out)
    }
}

fn is_shown_meta(key: &str) -> bool {
    key.starts_with(OWN_PREFIX) || SHOWN_META.contains(&key)
}

/// Returns a key without its quotes and escapes.
fn unquoted(quoted: &str) -> Cow<'_, str> {
    if quoted.contains('\\') {
        return serde_json::from_str::<String>(quoted).unwrap_or_default().into();
    }
    Cow::Borrowed(quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_members_of_meta_and_no_sealed_state_are_shown() {
        for (message, expected) in [
            (r#"{"id":1,"result":{"a":[1,"_meta"]}}"#, r#"{"id":1,"result":{"a":[1,"_meta"]}}"#),
            (
                r#"{"params":{"_meta":{"progressToken":1,"secret":{"a":"}"},"x":[1,2]}}}"#,
                r#"{"params":{"_meta":{"progressToken":1,"secret":"[masked]","x":"[masked]"}}}"#,
            ),
            (r#"{"_meta":{"ui":{"token":"a"}},"token":2}"#, r#"{"_meta":{"ui":{"token":"a"}},"token":2}"#),
            (
                r#"{"result":{"requestState" : "se\"aled","b":1}}"#,
                r#"{"result":{"requestState" : "[masked]","b":1}}"#,
            ),
            (r#"{"request\u0053tate":"sealed"}"#, r#"{"request\u0053tate":"[masked]"}"#),
            (r#"{"\u005fmeta":{"secret":1}}"#, r#"{"\u005fmeta":{"secret":"[masked]"}}"#),
            (
                r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://a/?t=1"}}"#,
                r#"{"method":"elicitation/create","params":{"mode":"url","url":"[masked]"}}"#,
            ),
            (
                r#"{"params":{"arguments":{"url":"https://a/"}}}"#,
                r#"{"params":{"arguments":{"url":"https://a/"}}}"#,
            ),
            // The beginning of a message that is too long.
            (r#"{"_meta":{"secret":"abc"#, r#"{"_meta":{"secret":"[masked]""#),
            (r#"{"_meta":{"sec"#, r#"{"_meta":{"sec"[masked]""#),
            ("", ""),
            (r#"{"a":"\"#, r#"{"a":"\"#),
        ] {
            assert_eq!(masked(message), expected);
        }
    }
}
