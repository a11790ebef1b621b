use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use trunkline_protocol::codec::ListPageResult;
use trunkline_protocol::model::CacheHint;
use trunkline_protocol::{Params, RawJson, Refusal};

/// Which list a page is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
}

impl ListKind {
    /// Returns the member of the result that holds the items.
    const fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Returns the prefix of the list's cursors, so that a cursor of another list is not accepted.
    const fn tag(self) -> &'static str {
        match self {
            Self::Tools => "t:",
            Self::Prompts => "p:",
            Self::Resources => "r:",
            Self::Templates => "m:",
        }
    }
}

/// The longest cursor that is read; ours hold a name or a URI.
const MAX_CURSOR_LENGTH: usize = 16 * 1024;

/// The bytes of items after which a page ends: a client that reads messages of 4 MiB can read every page, unless a
/// single item is larger.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Makes the requested page: at most `size` items, and no more than 2 MiB of them.
///
/// A cursor names the last item before the page, so pages stay consistent when items are added or removed between
/// requests.
///
/// # Errors
/// [`Refusal::INVALID_PARAMS`] if the cursor is not one of ours for this list.
pub fn page<T>(
    kind: ListKind,
    entries: &BTreeMap<Arc<str>, T>,
    params: &Params,
    size: usize,
    cache: CacheHint,
    item: impl Fn(&T) -> RawJson,
) -> Result<ListPageResult, Refusal> {
    let last_before = read_cursor(kind, params)?;
    let start = last_before.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = entries.range::<str, _>((start, Bound::Unbounded)).peekable();
    let mut items = Vec::with_capacity(size.min(entries.len()));
    let (mut last, mut bytes) = (None, 0_usize);
    while let Some((name, entry)) = rest.peek().filter(|_| items.len() < size) {
        let written = item(entry);
        bytes += written.as_str().len();
        // Every page has at least one item, so that paging ends.
        if bytes > MAX_PAGE_BYTES && !items.is_empty() {
            break;
        }
        items.push(written);
        last = Some(*name);
        rest.next();
    }
    let next_cursor = last.filter(|_| rest.peek().is_some()).map(|name| write_cursor(kind, name));
    Ok(ListPageResult { key: kind.key(), items, next_cursor, cache })
}

fn write_cursor(kind: ListKind, last: &str) -> String {
    BASE64URL.encode(format!("{}{last}", kind.tag()))
}

fn read_cursor(kind: ListKind, params: &Params) -> Result<Option<String>, Refusal> {
    let Some(cursor) = params.get("cursor").filter(|raw| !raw.is_null()) else { return Ok(None) };
    let read = || {
        let text = cursor.as_text().filter(|text| text.len() <= MAX_CURSOR_LENGTH)?;
        let decoded = String::from_utf8(BASE64URL.decode(text.as_bytes()).ok()?).ok()?;
        decoded.strip_prefix(kind.tag()).map(str::to_owned)
    };
    read()
        .map(Some)
        .ok_or_else(|| Refusal::INVALID_PARAMS.with_message("`cursor` is not one that this list gave out"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_protocol::{Method, Revision};

    use super::*;
    use crate::server::{Server, ServerHandle};
    use crate::testing::{answer_in, assert_refused};
    use crate::tool::Tool;

    fn tools(names: &[&str]) -> Vec<Tool> {
        names.iter().map(|name| Tool::new(*name).run(|| async {})).collect()
    }

    fn server(page_size: usize) -> ServerHandle {
        Server::new("test").page_size(page_size).with(tools(&["d", "a", "e", "c", "b"])).handle().unwrap()
    }

    fn list(server: &ServerHandle, cursor: Option<&Value>) -> Result<(Vec<String>, Option<Value>), Refusal> {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = answer_in(server, Revision::NEWEST, Method::ToolsList, &params)?;
        let names = page["tools"].as_array().unwrap().iter();
        let names = names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        Ok((names, page.get("nextCursor").cloned()))
    }

    #[test]
    fn concatenated_pages_are_the_sorted_list() {
        for size in 1..7 {
            let server = server(size);
            let (mut all, mut cursor) = list(&server, None).unwrap();
            let mut pages = 1;
            while let Some(here) = cursor {
                let (names, next) = list(&server, Some(&here)).unwrap();
                assert!((1..=size).contains(&names.len()));
                all.extend(names);
                cursor = next;
                pages += 1;
            }
            assert_eq!(all, ["a", "b", "c", "d", "e"]);
            assert_eq!(pages, 5_usize.div_ceil(size), "{size}");
        }
    }

    #[test]
    fn list_page_ends_at_its_byte_limit() {
        let large = |name: &str, bytes: usize| {
            Tool::new(name.to_owned()).description("x".repeat(bytes)).run(|| async {})
        };
        let sizes = [
            ("a", 10),
            ("b", MAX_PAGE_BYTES / 2),
            ("c", MAX_PAGE_BYTES / 2),
            ("d", 2 * MAX_PAGE_BYTES),
            ("e", 10),
        ];
        let tools: Vec<Tool> = sizes.iter().map(|(name, bytes)| large(name, *bytes)).collect();
        let server = Server::new("test").with(tools).handle().unwrap();
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let (names, next) = list(&server, cursor.as_ref()).unwrap();
            pages.push(names.concat());
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, ["ab", "c", "d", "e"]);
    }

    #[test]
    fn page_size_of_zero_is_one() {
        assert_eq!(list(&server(0), None).unwrap().0, ["a"]);
    }

    #[test]
    fn cursor_stays_valid_when_items_are_added_or_removed() {
        let server = server(2);
        let (first, cursor) = list(&server, None).unwrap();
        assert_eq!(first, ["a", "b"]);
        assert!(server.remove_tool("b") && server.remove_tool("c"));
        server.add(tools(&["aa", "cc"])).unwrap();
        let (second, _) = list(&server, cursor.as_ref()).unwrap();
        assert_eq!(second, ["cc", "d"]);
    }

    #[test]
    fn unknown_cursor_is_refused() {
        let foreign = BASE64URL.encode("p:a");
        let long = "a".repeat(MAX_CURSOR_LENGTH + 1);
        for cursor in [
            json!(""),
            json!("a"),
            json!("!"),
            json!("dDo="),
            json!(7),
            json!({}),
            json!(foreign),
            json!(long),
        ] {
            assert_refused(list(&server(2), Some(&cursor)), &Refusal::INVALID_PARAMS, "`cursor`");
        }
        assert!(list(&server(2), Some(&Value::Null)).is_ok());
    }
}
