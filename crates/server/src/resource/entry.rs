use std::fmt;

use trunkline_protocol::model::{self, CacheHint};
use trunkline_protocol::{RawJson, Revision};

use super::{ReadFn, ReadFuture, ReadRequest, Resource};
use crate::call::Context;
use crate::part::check_name;
use crate::registry::RenderedItem;

/// A resource that is ready to be read.
pub(crate) struct ResourceEntry {
    described: model::Resource,
    rendered: RenderedItem,
    cache: CacheHint,
    read: ReadFn,
}

impl ResourceEntry {
    pub(super) fn build(resource: Resource) -> Result<Self, Vec<String>> {
        let described = resource.described;
        let mut problems = resource.problems;
        problems.extend(check_name(&described.name).err());
        if !has_scheme(&described.uri) {
            problems.push("is not a URI with a scheme".to_owned());
        }
        match resource.read {
            Some(read) if problems.is_empty() => {
                Ok(Self { described, rendered: RenderedItem::default(), cache: resource.cache, read })
            }
            read => {
                problems.extend(read.is_none().then(|| "has no content and no handler".to_owned()));
                Err(problems)
            }
        }
    }

    pub(crate) fn uri(&self) -> &str {
        &self.described.uri
    }

    pub(crate) fn list_item(&self, revision: Revision) -> RawJson {
        self.rendered.get(revision, |dialect, writer| self.described.write(dialect, writer))
    }

    /// Reads the resource.
    pub(crate) fn read(&self, context: Context) -> ReadFuture {
        let request = ReadRequest {
            uri: self.described.uri.clone(),
            mime_type: self.described.mime_type.clone(),
            cache: self.cache,
        };
        (self.read)(context, request)
    }
}

impl fmt::Debug for ResourceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceEntry").field("described", &self.described).finish_non_exhaustive()
    }
}

/// Reports whether a text begins like an absolute URI after RFC 3986.
fn has_scheme(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let legal = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let clean = !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control());
    clean && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_need_a_scheme_and_no_space() {
        for (uri, legal) in [
            ("file:///a", true),
            ("x-y+1.z:a", true),
            ("", false),
            ("readme.md", false),
            (":a", false),
            ("1a:b", false),
            ("a:", false),
            ("a:b c", false),
            ("a/b:c", false),
        ] {
            assert_eq!(has_scheme(uri), legal, "{uri}");
        }
    }
}
