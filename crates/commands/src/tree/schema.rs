use serde_json::{Map, Value, json};

use super::argument::Argument;
use super::relations::Relations;

/// Makes the JSON Schema of a call's arguments.
pub(super) fn schema(arguments: &[Argument], relations: &Relations) -> Value {
    let properties: Map<String, Value> = arguments
        .iter()
        .enumerate()
        .map(|(at, argument)| (argument.property.clone(), argument.schema(&relations.notes(at, arguments))))
        .collect();
    let required: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.property.as_str())
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    relations.add_to(&mut schema, arguments);
    schema.into()
}
