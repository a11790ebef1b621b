//! The check whether clients certainly accept a result, done in the single pass over every result.
//!
//! A negative result is not an error: the tables of [`crate::model::repair`], which cost more, then have to check the
//! result.
//!
//! See [Tool Result](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result),
//! [PromptMessage](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#promptmessage),
//! [Resource Contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-contents) and
//! [Completion Results](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#completion-results).

use crate::json::{JsonScanner, ScannedKey};
use crate::model::CompleteResult;
use crate::model::repair::{is_date_time, is_fraction};

/// The kinds of content that not every revision has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ContentKinds {
    pub(super) audio: bool,
    pub(super) link: bool,
}

/// The members of blocks, of any kind.
const BLOCK: [&str; 13] = [
    "type",
    "text",
    "data",
    "mimeType",
    "uri",
    "name",
    "title",
    "description",
    "resource",
    "annotations",
    "_meta",
    "size",
    "icons",
];
const TYPE: usize = 0;
const TEXT: u16 = 1 << 1;
const DATA: u16 = 1 << 2;
const MIME_TYPE: u16 = 1 << 3;
const URI: u16 = 1 << 4;
const NAME: u16 = 1 << 5;
const RESOURCE_AT: usize = 8;
const RESOURCE: u16 = 1 << RESOURCE_AT;
const ANNOTATIONS: usize = 9;
const META: usize = 10;
const SIZE: usize = 11;
const ICONS: usize = 12;

/// Skips the content of a tool's result.
pub(super) fn content(scanner: &mut JsonScanner<'_>, kinds: &mut ContentKinds) -> bool {
    each(scanner, |scanner| block(scanner, kinds))
}

/// Skips the contents of a resource.
pub(super) fn contents(scanner: &mut JsonScanner<'_>) -> bool {
    each(scanner, resource_contents)
}

/// Skips the messages of a prompt.
pub(super) fn messages(scanner: &mut JsonScanner<'_>, kinds: &mut ContentKinds) -> bool {
    each(scanner, |scanner| message(scanner, kinds))
}

/// Skips the completions of an argument.
pub(super) fn completion(scanner: &mut JsonScanner<'_>) -> bool {
    const MEMBERS: [&str; 3] = ["values", "total", "hasMore"];
    let mut has_values = false;
    let is_fine = members(scanner, &MEMBERS, |scanner, index| match index {
        0 => {
            has_values = true;
            let mut count = 0_usize;
            let are_texts = each(scanner, |scanner| {
                count += 1;
                text(scanner)
            });
            are_texts && count <= CompleteResult::MAX
        }
        1 => natural(scanner),
        _ => flag(scanner),
    });
    is_fine && has_values
}

/// Skips a string.
pub(super) fn text(scanner: &mut JsonScanner<'_>) -> bool {
    let is_text = scanner.peek() == Some(b'"');
    scanner.skip();
    is_text
}

/// Skips a boolean.
fn flag(scanner: &mut JsonScanner<'_>) -> bool {
    matches!(scanner.value_text(), Some("true" | "false"))
}

/// Skips a non-negative integer.
fn natural(scanner: &mut JsonScanner<'_>) -> bool {
    let text = scanner.value_text().unwrap_or_default();
    text.len() < 16 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn block<'a>(scanner: &mut JsonScanner<'a>, kinds: &mut ContentKinds) -> bool {
    let (mut kind, mut seen): (&'a str, u16) = ("", 0);
    let is_fine = members(scanner, &BLOCK, |scanner, index| {
        seen |= 1 << index;
        match index {
            TYPE => {
                kind = scanner.value_text().unwrap_or_default();
                true
            }
            RESOURCE_AT => resource_contents(scanner),
            ANNOTATIONS => annotations(scanner),
            META => object(scanner),
            SIZE => natural(scanner),
            ICONS => {
                scanner.skip();
                false
            }
            _ => text(scanner),
        }
    });
    let needed = match kind {
        r#""text""# => TEXT,
        r#""image""# => DATA | MIME_TYPE,
        r#""audio""# => {
            kinds.audio = true;
            DATA | MIME_TYPE
        }
        r#""resource_link""# => {
            kinds.link = true;
            URI | NAME
        }
        r#""resource""# => RESOURCE,
        _ => return false,
    };
    is_fine && seen & needed == needed
}

fn resource_contents(scanner: &mut JsonScanner<'_>) -> bool {
    const MEMBERS: [&str; 5] = ["uri", "text", "mimeType", "blob", "_meta"];
    let mut seen = 0_u8;
    let is_fine = members(scanner, &MEMBERS, |scanner, index| {
        seen |= 1 << index;
        if index == 4 { object(scanner) } else { text(scanner) }
    });
    // An address, and either a text or bytes.
    is_fine && (seen & 0b0011 == 0b0011 || seen & 0b1001 == 0b1001)
}

fn message(scanner: &mut JsonScanner<'_>, kinds: &mut ContentKinds) -> bool {
    const MEMBERS: [&str; 2] = ["role", "content"];
    let mut seen = 0_u8;
    let is_fine = members(scanner, &MEMBERS, |scanner, index| {
        seen |= 1 << index;
        if index == 0 { role(scanner) } else { block(scanner, kinds) }
    });
    is_fine && seen == 0b11
}

fn annotations(scanner: &mut JsonScanner<'_>) -> bool {
    const MEMBERS: [&str; 3] = ["audience", "priority", "lastModified"];
    members(scanner, &MEMBERS, |scanner, index| match index {
        0 => each(scanner, role),
        1 => is_fraction(scanner.value_text().unwrap_or_default()),
        _ => {
            let date = scanner.value_text().unwrap_or_default();
            date.strip_prefix('"').and_then(|date| date.strip_suffix('"')).is_some_and(is_date_time)
        }
    })
}

fn role(scanner: &mut JsonScanner<'_>) -> bool {
    matches!(scanner.value_text(), Some(r#""user""# | r#""assistant""#))
}

/// Skips an object with any members.
fn object(scanner: &mut JsonScanner<'_>) -> bool {
    let is_object = scanner.peek() == Some(b'{');
    scanner.skip();
    is_object
}

/// Skips an object and checks that each known member occurs once and is valid; other members may be anything.
#[inline]
fn members<'a, const N: usize>(
    scanner: &mut JsonScanner<'a>,
    known: &'static [&'static str; N],
    mut is_fine: impl FnMut(&mut JsonScanner<'a>, usize) -> bool,
) -> bool {
    if scanner.peek() != Some(b'{') {
        scanner.skip();
        return false;
    }
    scanner.open_object();
    let (mut are_fine, mut is_first, mut seen) = (true, true, 0_u16);
    while let Some(ScannedKey { index, .. }) = scanner.next_known(is_first, known) {
        is_first = false;
        match index {
            Some(index) => {
                are_fine &= seen & 1 << index == 0;
                seen |= 1 << index;
                are_fine &= is_fine(scanner, index);
            }
            None => {
                scanner.skip();
            }
        }
    }
    are_fine
}

/// Skips an array, and checks that every element is valid.
#[inline]
fn each(scanner: &mut JsonScanner<'_>, mut is_fine: impl FnMut(&mut JsonScanner<'_>) -> bool) -> bool {
    if scanner.peek() != Some(b'[') {
        scanner.skip();
        return false;
    }
    scanner.open_array();
    let (mut are_fine, mut is_first) = (true, true);
    while scanner.next_element(is_first) {
        is_first = false;
        are_fine &= is_fine(scanner);
    }
    are_fine
}
