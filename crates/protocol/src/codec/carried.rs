use crate::json::{MalformedJson, Members, Raw, Writer};
use crate::meta;
use crate::method::Method;
use crate::model::{CacheHint, CallToolResult, CompleteResult, GetPromptResult, ReadResult};
use crate::revision::Revision;

use super::reply::{CACHE_SCOPE, RESULT_TYPE, TTL};
use super::{Dialect, Reply};

/// A result that another server made, on its way through.
///
/// A reader who knows everything that its maker could say gets it as it is, but for what belongs to each hop. For any other
/// reader it is read and said in words that the reader knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    method: Method,
    from: Revision,
    members: Members,
    must_not_be_kept: bool,
}

impl Carried {
    /// Takes the result of a method from a server of a revision.
    ///
    /// # Errors
    /// The result is not an object.
    pub fn new(method: Method, from: Revision, result: &Raw) -> Result<Self, MalformedJson> {
        Ok(Self { method, from, members: result.members()?, must_not_be_kept: false })
    }

    /// Says that nobody may keep the result for later, whatever its maker says: it depends on what was asked on the way.
    #[must_use]
    pub fn not_to_be_kept(self) -> Self {
        Self { must_not_be_kept: true, ..self }
    }

    /// Returns a member of the result.
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.members.get(key)
    }

    /// Returns the result as its maker wrote it.
    pub fn to_raw(&self) -> Raw {
        self.members.to_raw()
    }

    /// Returns what the result carries for others, without what was for this hop alone.
    pub(super) fn meta(&self) -> Option<Members> {
        let meta = self.members.get("_meta")?.members().ok()?;
        let others = meta.iter().filter(|(key, _)| !meta::is_of_one_hop(key));
        let others: Members = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        (!others.is_empty() || meta.is_empty()).then_some(others)
    }

    /// Writes the members of the result, except for those that every result of a dialect has.
    pub(super) fn write_members(&self, dialect: &Dialect, writer: &mut Writer) {
        match self.said_anew(dialect) {
            Some(Reply::Tool(result)) => result.write_members(dialect, writer),
            Some(Reply::Prompt(result)) => result.write_members(dialect, writer),
            Some(Reply::Read(result)) => result.write_members(dialect, writer),
            Some(Reply::Complete(result)) => result.write_members(dialect, writer),
            _ => self.write_as_it_is(dialect, writer),
        }
    }

    /// Reads the result for a reader who would not understand all of it as it is. What cannot be read is left to the reader.
    fn said_anew(&self, dialect: &Dialect) -> Option<Reply> {
        if dialect.revision() >= self.from {
            return None;
        }
        let raw = self.members.to_raw();
        match self.method {
            Method::ToolsCall => CallToolResult::read(&raw).ok().map(Reply::Tool),
            Method::PromptsGet => GetPromptResult::read(&raw).ok().map(Reply::Prompt),
            Method::ResourcesRead => ReadResult::read(&raw).ok().map(Reply::Read),
            Method::Complete => CompleteResult::read(&raw).ok().map(Reply::Complete),
            _ => None,
        }
    }

    fn write_as_it_is(&self, dialect: &Dialect, writer: &mut Writer) {
        for (key, value) in self.members.iter() {
            if ![RESULT_TYPE, "_meta", TTL, CACHE_SCOPE].contains(&&**key) {
                writer.member(key, value);
            }
        }
        if self.method == Method::ResourcesRead {
            let hint = match self.must_not_be_kept {
                true => CacheHint::default(),
                false => CacheHint::read(&self.members),
            };
            hint.write_members(dialect, writer);
        }
    }
}
