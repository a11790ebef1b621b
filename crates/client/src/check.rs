use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use trunkline_protocol::{Raw, shorten};

/// The most faults that one complaint names.
const MOST_FAULTS: usize = 5;

/// The largest schema that is compiled; what a tool with a larger one says is not checked.
const MOST_SCHEMA_BYTES: usize = 256 << 10;

/// The schema of a tool's structured content, compiled.
///
/// It comes from a peer, so nothing that it refers to is ever fetched, and no pattern in it can take more than linear time.
#[derive(Debug)]
pub(crate) struct OutputCheck {
    validator: Validator,
}

impl OutputCheck {
    /// Compiles a schema; one that cannot be compiled checks nothing.
    pub(crate) fn compile(schema: &Raw) -> Option<Self> {
        if schema.as_str().len() > MOST_SCHEMA_BYTES {
            return None;
        }
        let schema: Value = schema.decode().ok()?;
        let mut options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        if schema.get("$schema").is_none() {
            options = options.with_draft(Draft::Draft202012);
        }
        match options.build(&schema) {
            Ok(validator) => Some(Self { validator }),
            Err(error) => {
                tracing::debug!(problem = shorten(&error.to_string()), "an output schema checks nothing");
                None
            }
        }
    }

    /// Returns what is wrong with a value, each fault with the way to it, or nothing.
    pub(crate) fn complaint(&self, value: &Raw) -> Option<String> {
        let Ok(value) = value.decode::<Value>() else { return Some("it is not JSON".to_owned()) };
        if self.validator.is_valid(&value) {
            return None;
        }
        let faults: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MOST_FAULTS)
            .map(|fault| match fault.instance_path().to_string() {
                path if path.is_empty() => shorten(&fault.to_string()),
                path => format!("{}: {}", shorten(&path), shorten(&fault.to_string())),
            })
            .collect();
        Some(faults.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(schema: &str, value: &str) -> Option<String> {
        let schema = Raw::parse(schema.to_owned()).unwrap();
        OutputCheck::compile(&schema)?.complaint(&Raw::parse(value.to_owned()).unwrap())
    }

    #[test]
    fn a_value_is_held_to_its_schema_and_the_faults_are_named() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"x-own":1}"#;
        assert_eq!(complaint(schema, r#"{"n":1}"#), None);
        assert!(complaint(schema, r#"{"n":"x"}"#).unwrap().starts_with("/n: "));
        assert!(complaint(schema, "[]").is_some());
    }

    #[test]
    fn a_schema_that_refers_elsewhere_is_not_fetched_and_checks_nothing() {
        let elsewhere = r#"{"$ref":"http://127.0.0.1:1/schema.json"}"#;
        assert!(OutputCheck::compile(&Raw::parse(elsewhere).unwrap()).is_none());
    }

    #[test]
    fn a_pattern_cannot_take_for_ever() {
        let schema = r#"{"type":"string","pattern":"^(a+)+$"}"#;
        let value = format!("\"{}b\"", "a".repeat(50_000));
        assert!(complaint(schema, &value).is_some());
    }
}
