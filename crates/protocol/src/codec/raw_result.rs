use std::fmt;
use std::ops::Deref;

use crate::json::{JsonScanner, MalformedJson, RawJson};

use super::result_layout::ResultLayout;

/// The result of a request as the server wrote it.
///
/// The positions of its parts are recorded while it is read, so that relaying it needs no second parse.
#[derive(Clone)]
pub struct RawResult {
    raw: RawJson,
    /// `None` if it has an unusual form, or was not determined.
    layout: Option<ResultLayout>,
}

impl RawResult {
    /// Reads the next result.
    pub(crate) fn scan(scanner: &mut JsonScanner<'_>) -> Option<Self> {
        scanner.peek();
        let (start, mut shape) = (scanner.at(), None);
        let raw = scanner.value_with(|scanner| shape = ResultLayout::walk(scanner, start))?;
        Some(Self { raw, layout: shape })
    }

    /// Returns the result alone.
    pub fn into_raw(self) -> RawJson {
        self.raw
    }

    /// Returns the result, with its end-to-end members made contiguous.
    ///
    /// # Errors
    /// The result is not an object, or two of its keys are equal.
    pub(super) fn into_layout(self) -> Result<(RawJson, ResultLayout), MalformedJson> {
        match self.layout {
            Some(shape) => Ok((self.raw, shape)),
            None => ResultLayout::of(self.raw),
        }
    }
}

impl Deref for RawResult {
    type Target = RawJson;

    fn deref(&self) -> &RawJson {
        &self.raw
    }
}

impl fmt::Debug for RawResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// The layout follows from the text, and need not be known for both values.
impl PartialEq for RawResult {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl From<RawJson> for RawResult {
    fn from(raw: RawJson) -> Self {
        Self { raw, layout: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{self, MessageLimits, MessageOrBatch};
    use crate::{Message, Response};

    fn read(result: &str) -> RawResult {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result": {result} }}"#);
        match envelope::read(message.into(), MessageLimits::default()) {
            Ok(MessageOrBatch::One(Message::Response(Response { outcome: Ok(result), .. }))) => result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn layout_recorded_during_parsing_equals_a_second_parse() {
        for (result, is_noted) in [
            ("{}", true),
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{ "isError" : true , "content": [1] }"#, true),
            (r#"{"resultType":"complete","content":[{"a":"}"}],"_meta":{"a":1}}"#, true),
            (r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"a":{}}},"content":[]}"#, true),
            (r#"{"isErr\u006fr":true,"structuredContent":[1]}"#, true),
            // A hop-by-hop member between others, an unknown member, a repeated member.
            (r#"{"content":[],"_meta":{"a":1},"isError":true}"#, false),
            (r#"{"x":1,"isError":true}"#, false),
            (r#"{"content":[],"content":[]}"#, false),
            (r#"{"\ud800":1}"#, false),
            ("[]", false),
            ("7", false),
        ] {
            let noted = read(result);
            assert_eq!(noted.as_str(), result);
            assert_eq!(noted.layout.is_some(), is_noted, "{result}");
            let looked_at = RawResult::from(noted.clone().into_raw());
            assert_eq!(noted.into_layout(), looked_at.into_layout(), "{result}");
        }
    }
}
