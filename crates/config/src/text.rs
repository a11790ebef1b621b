use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use zeroize::Zeroizing;

/// A text of a configuration, as written and with its variables expanded.
///
/// Debug output is redacted, since the expanded text may be a secret. The written text may be one too, so there is no
/// `Display` either.
#[derive(Clone)]
pub struct ConfigText {
    written: Zeroizing<String>,
    /// The expanded text, if it differs.
    value: Option<Zeroizing<String>>,
}

impl ConfigText {
    /// Creates a text without variables.
    pub fn new(text: impl Into<String>) -> Self {
        Self { written: Zeroizing::new(text.into()), value: None }
    }

    pub(crate) fn expanded(written: String, value: String) -> Self {
        let value = (value != written).then(|| Zeroizing::new(value));
        Self { written: Zeroizing::new(written), value }
    }

    /// Returns the text as written, with variables by name.
    pub fn as_written(&self) -> &str {
        &self.written
    }

    /// Returns the expanded text. Every call of this may expose a secret.
    pub fn expose(&self) -> &str {
        self.value.as_ref().unwrap_or(&self.written)
    }
}

/// Compares the expanded texts.
impl PartialEq for ConfigText {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for ConfigText {}

impl From<&str> for ConfigText {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Text(…)")
    }
}

/// The name by which the reader knows that both forms of a text are wanted.
pub(crate) const TEXT: &str = "trunkline_config::Text";

impl<'de> Deserialize<'de> for ConfigText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = ConfigText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ConfigText, E> {
                Ok(ConfigText::new(text))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<ConfigText, D::Error> {
                inner.deserialize_any(self)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut forms: A) -> Result<ConfigText, A::Error> {
                match (forms.next_element()?, forms.next_element()?) {
                    (Some(written), Some(value)) => Ok(ConfigText::expanded(written, value)),
                    _ => Err(A::Error::custom("expected a string")),
                }
            }
        }
        deserializer.deserialize_newtype_struct(TEXT, TextVisitor)
    }
}

impl JsonSchema for ConfigText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// The name by which the reader knows that a text has places such as `{name}` in it, which no variable's value may make.
pub(crate) const TEMPLATE: &str = "trunkline_config::Template";

/// A text without variable expansion: `${NAME}` within it is literal, as scripts need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbatimText(pub String);

/// The name by which the reader knows that variables are to be left alone.
pub(crate) const VERBATIM: &str = "trunkline_config::Verbatim";

impl<'de> Deserialize<'de> for VerbatimText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VerbatimVisitor;
        impl<'de> Visitor<'de> for VerbatimVisitor {
            type Value = VerbatimText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<VerbatimText, E> {
                Ok(VerbatimText(text.to_owned()))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<VerbatimText, D::Error> {
                inner.deserialize_str(self)
            }
        }
        deserializer.deserialize_newtype_struct(VERBATIM, VerbatimVisitor)
    }
}

impl JsonSchema for VerbatimText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Verbatim".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_text_debug_is_redacted() {
        let text = ConfigText::expanded("${SENTINEL}".into(), "canary".into());
        assert_eq!(format!("{text:?} {:#?}", Some(&text)), "Text(…) Some(\n    Text(…),\n)");
        assert_eq!((text.as_written(), text.expose()), ("${SENTINEL}", "canary"));
        assert_eq!(text, ConfigText::new("canary"));
    }
}
