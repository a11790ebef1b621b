use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use trunkline_protocol::codec::ListReply;
use trunkline_protocol::model::CacheHint;
use trunkline_protocol::{Params, Raw, Refusal};

/// Which list a page is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
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

    /// Returns what the cursors of the list begin with, so that no cursor of another list is taken for one of this.
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
const LONGEST_CURSOR: usize = 16 * 1024;

/// Makes the page that a request asks for.
///
/// A cursor names the last item before the page, so pages stay in step when items come and go between requests.
///
/// # Errors
/// [`Refusal::INVALID_PARAMS`] if the cursor is not one of ours for this list.
pub(crate) fn page<T>(
    kind: ListKind,
    entries: &BTreeMap<Arc<str>, T>,
    params: &Params,
    size: usize,
    cache: CacheHint,
    item: impl Fn(&T) -> Raw,
) -> Result<ListReply, Refusal> {
    let last_before = read_cursor(kind, params)?;
    let start = last_before.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = entries.range::<str, _>((start, Bound::Unbounded)).peekable();
    let mut items = Vec::with_capacity(size.min(entries.len()));
    let mut last = None;
    for (name, entry) in rest.by_ref().take(size) {
        items.push(item(entry));
        last = Some(name);
    }
    let next_cursor = last.filter(|_| rest.peek().is_some()).map(|name| write_cursor(kind, name));
    Ok(ListReply { key: kind.key(), items, next_cursor, cache })
}

fn write_cursor(kind: ListKind, last: &str) -> String {
    BASE64URL.encode(format!("{}{last}", kind.tag()))
}

fn read_cursor(kind: ListKind, params: &Params) -> Result<Option<String>, Refusal> {
    let Some(cursor) = params.get("cursor").filter(|raw| !raw.is_null()) else { return Ok(None) };
    let read = || {
        let text = cursor.as_text().filter(|text| text.len() <= LONGEST_CURSOR)?;
        let decoded = String::from_utf8(BASE64URL.decode(text.as_bytes()).ok()?).ok()?;
        decoded.strip_prefix(kind.tag()).map(str::to_owned)
    };
    read()
        .map(Some)
        .ok_or_else(|| Refusal::INVALID_PARAMS.because("`cursor` is not one that this list gave out"))
}
