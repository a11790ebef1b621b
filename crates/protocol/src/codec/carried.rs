use crate::json::{JsonKind, Members, Raw, Writer};
use crate::meta;
use crate::method::Method;
use crate::model::repair::repaired_result;
use crate::model::{
    CacheHint, CallToolResult, CompleteResult, GetPromptResult, MalformedModel, ReadResult, Repairs,
};
use crate::revision::Revision;

use super::shape::Shape;
use super::{Dialect, RawResult, Reply};

/// A result that another server made, on its way through.
///
/// A reader who knows everything that its maker could say gets it as it is, but for what belongs to each hop. For any other
/// reader it is read and said in words that the reader knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    method: Method,
    from: Revision,
    result: Raw,
    shape: Shape,
    repairs: Repairs,
    must_not_be_kept: bool,
}

impl Carried {
    /// Takes the result of a method from a server of a revision, and repairs what clients would reject and has one obvious
    /// meaning.
    ///
    /// # Errors
    /// The result is not an object, two of its keys are equal, or clients would reject it.
    pub fn new(method: Method, from: Revision, result: impl Into<RawResult>) -> Result<Self, MalformedModel> {
        let (mut result, mut shape) = result.into().into_shaped()?;
        let mut repairs = Repairs::default();
        if !shape.conforms(method, Dialect::of(from))
            && let Some(repaired) = repaired_result(method, Dialect::of(from), &result, &mut repairs)?
        {
            (result, shape) = Shape::of(repaired)?;
        }
        Ok(Self { method, from, result, shape, repairs, must_not_be_kept: false })
    }

    /// Returns what was malformed in the result, and was replaced or dropped.
    pub fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    /// Says that nobody may keep the result for later, whatever its maker says: it depends on what was asked on the way.
    #[must_use]
    pub fn not_to_be_kept(self) -> Self {
        Self { must_not_be_kept: true, ..self }
    }

    /// Returns the result as its maker meant it.
    pub fn raw(&self) -> &Raw {
        &self.result
    }

    /// Reports whether a tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.shape.is_error
    }

    /// Returns what the result carries for others, without what was for this hop alone.
    pub(super) fn meta(&self) -> Option<Members> {
        let text = self.result.as_str().get(self.shape.meta.clone()?)?;
        let meta = Members::parse(&self.result.text().slice_ref(text)).ok()?;
        let others = meta.iter().filter(|(key, _)| !meta::is_of_one_hop(key));
        Some(others.map(|(key, value)| (key.clone(), value.clone())).collect())
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
        if self.is_understood_by(dialect) {
            return None;
        }
        // What belongs to one hop is written by itself, and may be malformed.
        let members = self.result.as_str().get(self.shape.members.clone()).unwrap_or_default();
        let result = Raw::trusted(format!("{{{members}}}").into());
        match self.method {
            Method::ToolsCall => CallToolResult::read(&result).ok().map(Reply::Tool),
            Method::PromptsGet => GetPromptResult::read(&result).ok().map(Reply::Prompt),
            Method::ResourcesRead => ReadResult::read(&result).ok().map(Reply::Read),
            Method::Complete => CompleteResult::read(&result).ok().map(Reply::Complete),
            _ => None,
        }
    }

    /// Reports whether a reader knows everything that the result says, by what the two revisions have words for and by what
    /// is there: servers say what their revision has no words for.
    fn is_understood_by(&self, dialect: &Dialect) -> bool {
        let is_newer = dialect.revision() >= self.from;
        let has_words = |structured: JsonKind| match dialect.structured {
            true => dialect.structured_any || structured == JsonKind::Object,
            // The member has no meaning in either revision.
            false => is_newer,
        };
        let kinds = self.shape.kinds;
        (is_newer || dialect.understands_content_of(Dialect::of(self.from)))
            && self.shape.structured.is_none_or(has_words)
            && (dialect.audio || !kinds.audio)
            && (dialect.resource_link || !kinds.link)
    }

    fn write_as_it_is(&self, dialect: &Dialect, writer: &mut Writer) {
        let members = self.result.as_str().get(self.shape.members.clone()).unwrap_or_default();
        if !members.is_empty() {
            writer.verbatim(members);
        }
        if self.method == Method::ResourcesRead {
            let hint = match self.must_not_be_kept {
                true => CacheHint::default(),
                false => CacheHint::read(&self.result.members().unwrap_or_default()),
            };
            hint.write_members(dialect, writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::write_reply;
    use super::*;

    fn written(result: &str, from: Revision, to: Revision) -> String {
        let result = Raw::parse(result.to_owned()).unwrap();
        let carried = Carried::new(Method::ToolsCall, from, result).unwrap();
        let mut writer = Writer::with_capacity(64);
        write_reply(&Reply::Carried(carried), Dialect::of(to), &Raw::EMPTY_OBJECT, &mut writer);
        writer.into_string()
    }

    #[test]
    fn a_result_is_said_anew_only_for_who_would_not_understand_it() {
        use Revision as R;
        let link = r#"{"type":"resource_link","uri":"x:1","name":"n"}"#;
        for (result, from, to, expected) in [
            // In another order than ours, so that it can be seen that nobody has read it.
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
