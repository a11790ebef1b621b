//! Tool arguments that are sent in headers as well, marked in a tool's input schema by `x-mcp-header`.
//!
//! [`MirroredParams`] is the result of reading a schema's marks. A client writes the headers from it, and a server
//! checks with it that headers and body agree.
//!
//! See [Custom Headers from Tool Parameters](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).

mod schema;
mod value;

use serde_json::Value;

pub use self::schema::{MAX_SCHEMA_DEPTH, MirrorError};
use self::value::{HeaderComparison, compare, header_text};
use crate::header::encode_value;

/// The prefix of every mirroring header.
pub const HEADER_PREFIX: &str = "Mcp-Param-";

/// The type of a mirrored argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MirrorKind {
    /// A string, mirrored as it is.
    String,
    /// An integer, mirrored in decimal and compared as a number.
    Integer,
    /// A boolean, mirrored as `true` or `false`.
    Boolean,
}

/// Describes one argument that a header mirrors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParam {
    path: Vec<String>,
    header: String,
    lowercase_header: String,
    kind: MirrorKind,
}

impl MirroredParam {
    fn new(path: &[&str], annotation: &str, kind: MirrorKind) -> Self {
        let header = format!("{HEADER_PREFIX}{annotation}");
        let lowercase_header = header.to_ascii_lowercase();
        Self { path: path.iter().map(ToString::to_string).collect(), header, lowercase_header, kind }
    }

    /// Returns the property names that lead from the arguments to the value.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the header's full name as the schema spells it, such as `Mcp-Param-Region`.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Returns the argument's type.
    #[must_use]
    pub fn kind(&self) -> MirrorKind {
        self.kind
    }

    /// Finds the argument in a call; one that is absent or null is not mirrored.
    fn find<'v>(&self, arguments: Option<&'v Value>) -> Option<&'v Value> {
        let found = self.path.iter().try_fold(arguments?, |value, name| value.as_object()?.get(name))?;
        (!found.is_null()).then_some(found)
    }
}

/// Lists the arguments of one tool that headers mirror.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirroredParams {
    params: Vec<MirroredParam>,
}

impl MirroredParams {
    /// Collects the marks of a tool's input schema.
    ///
    /// # Errors
    /// [`MirrorError`] for the first mark that breaks a rule; a client then leaves the tool out of its list.
    pub fn from_schema(schema: &Value) -> Result<Self, MirrorError> {
        schema::collect(schema).map(|params| Self { params })
    }

    /// Reports whether no argument is mirrored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Returns the mirrored arguments.
    pub fn iter(&self) -> std::slice::Iter<'_, MirroredParam> {
        self.params.iter()
    }

    /// Checks that a call's headers mirror its arguments.
    ///
    /// `lookup` receives a header's name in lower case and returns its value. A header that was sent twice has
    /// no single value; the caller rejects it before this check.
    ///
    /// # Errors
    /// [`MirrorMismatch`] for the first header that is missing, not called for, unreadable or different.
    pub fn check<'h>(
        &self,
        arguments: Option<&Value>,
        lookup: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Result<(), MirrorMismatch> {
        for param in &self.params {
            let argument = param.find(arguments);
            let header = lookup(&param.lowercase_header);
            let reason = match compare(param.kind, argument, header) {
                HeaderComparison::Agree => continue,
                HeaderComparison::Disagree(reason) => reason,
            };
            return Err(MirrorMismatch { header: param.header.clone(), reason });
        }
        Ok(())
    }

    /// Returns the headers to send with a call: names as the schema spells them, values encoded.
    #[must_use]
    pub fn headers(&self, arguments: Option<&Value>) -> Vec<(String, String)> {
        let header = |param: &MirroredParam| {
            let text = header_text(param.find(arguments)?)?;
            Some((param.header.clone(), encode_value(&text).into_owned()))
        };
        self.params.iter().filter_map(header).collect()
    }
}

impl<'a> IntoIterator for &'a MirroredParams {
    type Item = &'a MirroredParam;
    type IntoIter = std::slice::Iter<'a, MirroredParam>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Reports a header that does not mirror its argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header `{header}` {reason}")]
pub struct MirrorMismatch {
    /// The header's full name as the schema spells it.
    pub header: String,
    /// What is wrong with it.
    pub reason: MismatchReason,
}

/// The way in which a header fails to mirror its argument; it never contains the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MismatchReason {
    /// The argument is in the body and the header is absent.
    #[error("is missing although the argument is in the body")]
    Missing,
    /// The header is present and the argument is absent, null, or of a type that no header mirrors.
    #[error("is present although the body has no such argument")]
    Unexpected,
    /// The header's value cannot be decoded.
    #[error("cannot be decoded")]
    Undecodable,
    /// The two values differ.
    #[error("does not match the argument in the body")]
    Different,
    /// The argument is an integer that not every JSON reader represents exactly.
    #[error("mirrors an integer outside ±(2^53 - 1)")]
    OutOfRange,
}
