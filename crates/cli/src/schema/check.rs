use serde_json::Value;
use trunkline_protocol::RawJson;

use crate::exit::{CliFailure, ExitReason};

/// Checks arguments against the whole schema: ranges, patterns and lengths too. For schemas of the user's own files, since
/// one of a stranger may take long to check.
///
/// # Errors
/// The first mistake, by the path of its argument.
pub(crate) fn check_schema(schema: &Value, arguments: &RawJson) -> Result<(), CliFailure> {
    // What cannot be compiled here is left to the command itself.
    let Ok(validator) = jsonschema::options().offline().build(schema) else { return Ok(()) };
    let Ok(value) = arguments.get::<Value>() else { return Ok(()) };
    let Some(error) = validator.iter_errors(&value).next() else { return Ok(()) };
    let path = error.instance_path().to_string();
    let path = path.trim_start_matches('/').replace('/', ".");
    let message = if path.is_empty() { error.to_string() } else { format!("argument `{path}`: {error}") };
    Err(CliFailure::new(ExitReason::Usage, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_outside_of_the_schema_are_reported_with_their_path() {
        let schema = json!({ "type": "object", "properties": {
            "count": { "type": "integer", "minimum": 1 },
            "list": { "type": "array", "items": { "type": "string", "maxLength": 2 } },
        } });
        for (arguments, expected) in [
            (json!({ "count": 1, "list": ["ab"] }), None),
            (json!({ "count": 0 }), Some("argument `count`: 0 is less than the minimum of 1")),
            (
                json!({ "list": ["ab", "abc"] }),
                Some("argument `list.1`: \"abc\" is longer than 2 characters"),
            ),
        ] {
            let failure = check_schema(&schema, &RawJson::from(&arguments)).err();
            assert_eq!(failure.map(|failure| failure.to_string()).as_deref(), expected, "{arguments}");
        }
    }
}
