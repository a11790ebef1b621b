use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};
use crate::meta;
use crate::method::Method;
use crate::model::repair::repaired_result;
use crate::model::{
    CacheHint, CallToolResult, CompleteResult, GetPromptResult, MalformedModel, ReadResourceResult, RepairLog,
};
use crate::revision::Revision;

use super::result_layout::ResultLayout;
use super::{Dialect, RawResult, ServerResult};

/// A result of an upstream server that is relayed to a client.
///
/// A client with a dialect that covers the result receives it verbatim, except for its hop-by-hop members. For any
/// other client it is parsed and converted to the client's dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayedResult {
    method: Method,
    from: Revision,
    result: RawJson,
    layout: ResultLayout,
    repairs: RepairLog,
    is_uncacheable: bool,
}

impl RelayedResult {
    /// Wraps the result of a method from a server of a revision, and repairs members that clients would reject and
    /// that have one obvious meaning.
    ///
    /// # Errors
    /// The result is not an object, two of its keys are equal, or clients would reject it.
    pub fn new(method: Method, from: Revision, result: impl Into<RawResult>) -> Result<Self, MalformedModel> {
        let (mut result, mut shape) = result.into().into_layout()?;
        let mut repairs = RepairLog::default();
        if !shape.conforms(method, Dialect::of(from))
            && let Some(repaired) = repaired_result(method, Dialect::of(from), &result, &mut repairs)?
        {
            (result, shape) = ResultLayout::of(repaired)?;
        }
        Ok(Self { method, from, result, layout: shape, repairs, is_uncacheable: false })
    }

    /// Returns the repairs: the malformed members that were replaced or dropped.
    pub fn repairs(&self) -> &RepairLog {
        &self.repairs
    }

    /// Forbids caching of the result, whatever the upstream allows: it depends on the user's answers to input
    /// requests.
    #[must_use]
    pub fn without_caching(self) -> Self {
        Self { is_uncacheable: true, ..self }
    }

    /// Returns the result as the upstream meant it, with repairs applied.
    pub fn raw(&self) -> &RawJson {
        &self.result
    }

    /// Reports whether the tool failed (`isError`).
    pub fn is_error(&self) -> bool {
        self.layout.is_error
    }

    /// Returns the result's `_meta` without its hop-by-hop members.
    pub(super) fn meta(&self) -> Option<JsonObject> {
        let text = self.result.as_str().get(self.layout.meta.clone()?)?;
        let meta = JsonObject::parse(&self.result.text().slice_ref(text)).ok()?;
        let others = meta.iter().filter(|(key, _)| !meta::is_hop_by_hop(key));
        Some(others.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// Writes the members of the result, except for those that every result of a dialect has.
    pub(super) fn write_members(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        match self.converted(dialect) {
            Some(ServerResult::Tool(result)) => result.write_members(dialect, writer),
            Some(ServerResult::Prompt(result)) => result.write_members(dialect, writer),
            Some(ServerResult::Read(result)) => result.write_members(dialect, writer),
            Some(ServerResult::Complete(result)) => result.write_members(dialect, writer),
            _ => self.write_verbatim(dialect, writer),
        }
    }

    /// Parses the result for a client that would not understand all of it. A result that cannot be parsed is relayed
    /// verbatim.
    fn converted(&self, dialect: &Dialect) -> Option<ServerResult> {
        if self.is_supported_by(dialect) {
            return None;
        }
        // Hop-by-hop members are written separately, and may be malformed.
        let members = self.result.as_str().get(self.layout.members.clone()).unwrap_or_default();
        let result = RawJson::from_trusted(format!("{{{members}}}").into());
        match self.method {
            Method::ToolsCall => CallToolResult::read(&result).ok().map(ServerResult::Tool),
            Method::PromptsGet => GetPromptResult::read(&result).ok().map(ServerResult::Prompt),
            Method::ResourcesRead => ReadResourceResult::read(&result).ok().map(ServerResult::Read),
            Method::Complete => CompleteResult::read(&result).ok().map(ServerResult::Complete),
            _ => None,
        }
    }

    /// Reports whether a client understands all of the result. The features of both revisions decide, and so does the
    /// content itself: servers also send content that their revision does not have.
    fn is_supported_by(&self, dialect: &Dialect) -> bool {
        let is_newer = dialect.revision() >= self.from;
        let supports_structured = |structured: JsonKind| match dialect.structured {
            true => dialect.structured_any || structured == JsonKind::Object,
            // The member has no meaning in either revision.
            false => is_newer,
        };
        let kinds = self.layout.kinds;
        (is_newer || dialect.supports_content_of(Dialect::of(self.from)))
            && self.layout.structured.is_none_or(supports_structured)
            && (dialect.audio || !kinds.audio)
            && (dialect.resource_link || !kinds.link)
    }

    fn write_verbatim(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        let members = self.result.as_str().get(self.layout.members.clone()).unwrap_or_default();
        if !members.is_empty() {
            writer.verbatim(members);
        }
        if self.method == Method::ResourcesRead {
            let hint = match self.is_uncacheable {
                true => CacheHint::default(),
                false => CacheHint::read(&self.result.members().unwrap_or_default()),
            };
            hint.write_members(dialect, writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::write_result;
    use super::*;

    fn written(result: &str, from: Revision, to: Revision) -> String {
        let result = RawJson::parse(result.to_owned()).unwrap();
        let carried = RelayedResult::new(Method::ToolsCall, from, result).unwrap();
        let mut writer = JsonWriter::with_capacity(64);
        write_result(&ServerResult::Relayed(carried), Dialect::of(to), &RawJson::EMPTY_OBJECT, &mut writer);
        writer.into_string()
    }

    #[test]
    fn relayed_result_is_converted_only_for_dialects_that_lack_a_feature() {
        use Revision as R;
        let link = r#"{"type":"resource_link","uri":"x:1","name":"n"}"#;
        for (result, from, to, expected) in [
            // In another order than ours, which proves that the result was copied and not rewritten.
            (
                r#"{"resultType":"complete","isError":false,"content":[{"text":"a","type":"text"}],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#.to_owned(),
                R::V2026_07_28,
                R::V2025_11_25,
                r#"{"isError":false,"content":[{"text":"a","type":"text"}]}"#.to_owned(),
            ),
            (
                format!(r#"{{"structuredContent":{{"a":1}},"content":[{link}]}}"#),
                R::V2026_07_28,
                R::V2025_11_25,
                format!(r#"{{"structuredContent":{{"a":1}},"content":[{link}]}}"#),
            ),
            (
                r#"{"structuredContent":[1],"content":[]}"#.to_owned(),
                R::V2026_07_28,
                R::V2025_11_25,
                r#"{"content":[],"structuredContent":{"result":[1]}}"#.to_owned(),
            ),
            (
                format!(r#"{{"content":[{link}]}}"#),
                R::V2025_06_18,
                R::V2025_03_26,
                r#"{"content":[{"type":"text","text":"n — x:1"}]}"#.to_owned(),
            ),
        ] {
            assert_eq!(written(&result, from, to), expected, "{from} to {to}");
        }
    }
}
