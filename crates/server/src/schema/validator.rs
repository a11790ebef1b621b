use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, Validator};
use serde_json::Value;

use trunkline_protocol::shorten;

/// The most violations that one message names.
const MAX_VIOLATIONS: usize = 5;

/// A schema, compiled.
#[derive(Debug)]
pub(crate) struct SchemaValidator {
    validator: Validator,
}

impl SchemaValidator {
    /// Compiles a schema in the dialect that it declares, 2020-12 if it declares none; nothing is ever fetched.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let mut options = jsonschema::options().offline();
        match schema.get("$schema").map(|dialect| dialect.as_str().ok_or(dialect)) {
            None => options = options.with_draft(Draft::Draft202012),
            Some(Ok(dialect)) if Draft::from_schema_uri(dialect) != Draft::Unknown => {}
            Some(Ok(dialect)) => {
                return Err(format!("`$schema` names an unknown dialect: {}", shorten(dialect)));
            }
            Some(Err(_)) => return Err("`$schema` is not a string".to_owned()),
        }
        let validator = options.build(schema).map_err(|error| shorten(&error.to_string()))?;
        Ok(Self { validator })
    }

    /// Returns the violations of a value, each with the path to it, or nothing.
    pub(crate) fn violation(&self, value: &Value) -> Option<String> {
        if self.validator.is_valid(value) {
            return None;
        }
        let faults = self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|fault| {
            let path = fault.instance_path().as_str();
            let sentence = match fault.kind() {
                ValidationErrorKind::FalseSchema => nothing_allowed(value.pointer(path)),
                // The value is the caller's, and may be something that must not be repeated to a log or a model.
                _ => shorten(&fault.masked_with("the value").to_string()),
            };
            match path.strip_prefix('/') {
                Some(path) => format!("`{}`: {sentence}", shorten(path)),
                None => sentence,
            }
        });
        Some(faults.collect::<Vec<_>>().join("; "))
    }
}

/// Makes the message for a value where none is allowed, naming the properties found: the validator's own message does
/// not.
fn nothing_allowed(found: Option<&Value>) -> String {
    let names = found.and_then(Value::as_object).map(|found| found.keys().map(|name| format!("`{name}`")));
    let names: Vec<_> = names.into_iter().flatten().take(MAX_VIOLATIONS).collect();
    if names.is_empty() {
        "must not be given".to_owned()
    } else {
        shorten(&format!("no such property: {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_violations_name_the_field() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "integer" }, "list": { "items": { "maxLength": 1 } } },
            "required": ["b"],
        });
        let check = SchemaValidator::compile(&schema).unwrap();
        assert_eq!(check.violation(&json!({ "b": 1 })), None);
        let complaint = check.violation(&json!({ "a": "x", "list": ["", "yy"] })).unwrap();
        for part in [
            "`a`: the value is not of type \"integer\"",
            "`list/1`: the value is longer than 1 character",
            "\"b\" is a required property",
        ] {
            assert!(complaint.contains(part), "{complaint}");
        }
        assert!(!complaint.contains("yy"), "{complaint}");
    }

    #[test]
    fn schema_violation_messages_are_short_for_long_values() {
        let check = SchemaValidator::compile(&json!({ "items": { "type": "integer" } })).unwrap();
        let value = Value::Array(vec![Value::String("x".repeat(100_000)); 100]);
        assert!(check.violation(&value).unwrap().len() < 2_000);
    }

    #[test]
    fn unsupported_schemas_do_not_compile() {
        for (schema, problem) in [
            (json!({ "type": 7 }), ""),
            (json!({ "$ref": "https://example.com/schema.json" }), ""),
            (json!({ "$ref": "file:///etc/passwd" }), ""),
            (json!({ "$schema": "https://example.com/dialect" }), "unknown dialect"),
            (json!({ "$schema": 7 }), "not a string"),
        ] {
            let error = SchemaValidator::compile(&schema).unwrap_err();
            assert!(error.contains(problem), "{schema}: {error}");
        }
    }

    #[test]
    fn schemas_are_compiled_in_their_declared_dialect() {
        // An array of schemas under `items` means something only up to 2019-09.
        let old =
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": [{ "type": "string" }] });
        assert!(SchemaValidator::compile(&old).unwrap().violation(&json!([1])).is_some());
        let new = json!({ "prefixItems": [{ "type": "string" }] });
        assert!(SchemaValidator::compile(&new).unwrap().violation(&json!([1])).is_some());
    }
}
