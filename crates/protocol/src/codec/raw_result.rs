use std::fmt;
use std::ops::Deref;

use crate::json::{MalformedJson, Raw, Scanner};

use super::shape::Shape;

/// The result of a request as its maker wrote it.
///
/// Where its parts stand was noted while it was read, so that whoever carries it on need not read it again.
#[derive(Clone)]
pub struct RawResult {
    raw: Raw,
    /// Nothing if it is not written as results are, or not known.
    shape: Option<Shape>,
}

impl RawResult {
    /// Takes the result that comes next.
    pub(crate) fn scan(scanner: &mut Scanner<'_>) -> Option<Self> {
        scanner.peek();
        let (start, mut shape) = (scanner.at(), None);
        let raw = scanner.value_by(|scanner| shape = Shape::walk(scanner, start))?;
        Some(Self { raw, shape })
    }

    /// Returns the result alone.
    pub fn into_raw(self) -> Raw {
        self.raw
    }

    /// Returns the result with its members in such an order that those for everybody stand together.
    ///
    /// # Errors
    /// The result is not an object, or two of its keys are equal.
    pub(super) fn into_shaped(self) -> Result<(Raw, Shape), MalformedJson> {
        match self.shape {
            Some(shape) => Ok((self.raw, shape)),
            None => Shape::of(self.raw),
        }
    }
}

impl Deref for RawResult {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl fmt::Debug for RawResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// Where the parts stand follows from the text, and need not be known to both.
impl PartialEq for RawResult {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl From<Raw> for RawResult {
    fn from(raw: Raw) -> Self {
        Self { raw, shape: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{self, Bounds, Incoming};
    use crate::{Message, Response};

    fn read(result: &str) -> RawResult {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result": {result} }}"#);
        match envelope::read(message.into(), Bounds::default()) {
            Ok(Incoming::One(Message::Response(Response { outcome: Ok(result), .. }))) => result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_noted_while_a_result_is_read_is_what_a_second_look_would_find() {
        for (result, is_noted) in [
            ("{}", true),
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{ "isError" : true , "content": [1] }"#, true),
            (r#"{"resultType":"complete","content":[{"a":"}"}],"_meta":{"a":1}}"#, true),
            (r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"a":{}}},"content":[]}"#, true),
            (r#"{"isErr\u006fr":true,"structuredContent":[1]}"#, true),
            // What stands between others, is not known, or there twice.
            (r#"{"content":[],"_meta":{"a":1},"isError":true}"#, false),
            (r#"{"x":1,"isError":true}"#, false),
            (r#"{"content":[],"content":[]}"#, false),
            (r#"{"\ud800":1}"#, false),
            ("[]", false),
            ("7", false),
        ] {
            let noted = read(result);
            assert_eq!(noted.as_str(), result);
            assert_eq!(noted.shape.is_some(), is_noted, "{result}");
            let looked_at = RawResult::from(noted.clone().into_raw());
            assert_eq!(noted.into_shaped(), looked_at.into_shaped(), "{result}");
        }
    }
}
