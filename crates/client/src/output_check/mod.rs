//! Validates the structured content of a tool result against the tool's output schema.
//!
//! # Invariants
//!
//! - A `$ref` to another document is never fetched: `output_schema_with_remote_reference_is_not_fetched_and_not_applied`.

mod schema_cost;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use trunkline_protocol::{RawJson, shorten};

/// The most validation errors in one message.
const MAX_REPORTED_ERRORS: usize = 5;

/// The largest schema that is compiled; results of a tool with a larger one are not validated.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// The most schema visits to validate one value; a value that would take more is not validated.
const MAX_SCHEMA_VISITS: u64 = 1_000_000;

/// The deepest value with a cost that is computed in advance.
const MAX_PRECOUNTED_DEPTH: usize = 64;

/// A compiled output schema.
///
/// It comes from a peer, so remote references are never fetched, patterns take linear time, and the cost to
/// validate a value is computed before the validation.
#[derive(Debug)]
pub(crate) struct OutputCheck {
    schema: Value,
    /// The cost for one path into the deepest value; most schemas are so cheap that this suffices.
    max_cost_per_path: Option<u64>,
    validator: Validator,
}

impl OutputCheck {
    /// Compiles a schema; `None` if it cannot be compiled, and results are not validated then.
    pub(crate) fn compile(schema: &RawJson) -> Option<Self> {
        if schema.as_str().len() > MAX_SCHEMA_BYTES {
            return None;
        }
        let schema: Value = schema.decode().ok()?;
        // A schema that is too expensive to validate may also be too expensive to compile.
        if schema_cost::cost_per_path(&schema, 1).is_none_or(|cost| cost > MAX_SCHEMA_VISITS) {
            tracing::debug!("an output schema is too much work and checks nothing");
            return None;
        }
        let mut options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        if schema.get("$schema").is_none() {
            options = options.with_draft(Draft::Draft202012);
        }
        match options.build(&schema) {
            Ok(validator) => Some(Self {
                max_cost_per_path: schema_cost::cost_per_path(&schema, MAX_PRECOUNTED_DEPTH),
                schema,
                validator,
            }),
            Err(error) => {
                tracing::debug!(problem = shorten(&error.to_string()), "an output schema checks nothing");
                None
            }
        }
    }

    fn is_affordable(&self, value: &Value) -> bool {
        let (parts, levels) = schema_cost::value_size(value);
        let fits =
            |cost: Option<u64>| cost.is_some_and(|cost| cost.saturating_mul(parts) <= MAX_SCHEMA_VISITS);
        (levels <= MAX_PRECOUNTED_DEPTH && fits(self.max_cost_per_path))
            || fits(schema_cost::cost_per_path(&self.schema, levels))
    }

    /// Returns the validation errors of a value, each with its path, or `None`.
    pub(crate) fn validation_error(&self, value: &RawJson) -> Option<String> {
        let Ok(value) = value.decode::<Value>() else { return Some("it is not JSON".to_owned()) };
        if !self.is_affordable(&value) || self.validator.is_valid(&value) {
            return None;
        }
        let errors: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MAX_REPORTED_ERRORS)
            .map(|error| match error.instance_path().to_string() {
                path if path.is_empty() => shorten(&error.to_string()),
                path => format!("{}: {}", shorten(&path), shorten(&error.to_string())),
            })
            .collect();
        Some(errors.join("; "))
    }
}

/// Returns what is wrong with the arguments of a call by the whole schema of its tool, or `None`. A schema that cannot
/// be compiled, or is too much work, checks nothing; the server checks in any case.
///
/// ```
/// # use trunkline_client::argument_error;
/// # use trunkline_client::protocol::RawJson;
/// let schema = RawJson::parse(r#"{"properties":{"level":{"maximum":10}}}"#).unwrap();
/// let arguments = RawJson::parse(r#"{"level":11}"#).unwrap();
/// assert!(argument_error(&schema, &arguments).unwrap().starts_with("/level: "));
/// ```
pub fn argument_error(schema: &RawJson, arguments: &RawJson) -> Option<String> {
    OutputCheck::compile(schema)?.validation_error(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(schema: &str, value: &str) -> Option<String> {
        let schema = RawJson::parse(schema.to_owned()).unwrap();
        OutputCheck::compile(&schema)?.validation_error(&RawJson::parse(value.to_owned()).unwrap())
    }

    #[test]
    fn invalid_value_is_reported_with_its_path() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"x-own":1}"#;
        assert_eq!(complaint(schema, r#"{"n":1}"#), None);
        assert!(complaint(schema, r#"{"n":"x"}"#).unwrap().starts_with("/n: "));
        assert!(complaint(schema, "[]").is_some());
    }

    #[test]
    fn output_schema_with_remote_reference_is_not_fetched_and_not_applied() {
        let elsewhere = r#"{"$ref":"http://127.0.0.1:1/schema.json"}"#;
        assert!(OutputCheck::compile(&RawJson::parse(elsewhere).unwrap()).is_none());
    }

    #[test]
    fn too_expensive_output_schema_is_not_applied() {
        let node = r##"{"properties":{"x":{"$ref":"#"}},"required":["y"]}"##;
        let schema = format!(r#"{{"anyOf":[{node},{node}]}}"#);
        let nested = |levels: usize| format!("{}1{}", r#"{"x":"#.repeat(levels), "}".repeat(levels));
        assert!(complaint(&schema, &nested(4)).is_some());
        assert_eq!(complaint(&schema, &nested(60)), None);
    }

    #[test]
    fn output_schema_pattern_takes_linear_time() {
        let schema = r#"{"type":"string","pattern":"^(a+)+$"}"#;
        let value = format!("\"{}b\"", "a".repeat(50_000));
        assert!(complaint(schema, &value).is_some());
    }
}
