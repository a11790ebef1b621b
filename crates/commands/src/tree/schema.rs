use serde_json::{Map, Value, json};

use super::argument::ClapArgument;
use super::relations::ArgumentRelations;

/// Generates the JSON Schema of a call's arguments, and the same without their relations.
pub(super) fn schemas(arguments: &[ClapArgument], relations: &ArgumentRelations) -> (Value, Value) {
    let each = properties_schema(arguments, relations);
    let mut whole = each.clone();
    relations.add_to(&mut whole, arguments);
    (whole.into(), each.into())
}

fn properties_schema(arguments: &[ClapArgument], relations: &ArgumentRelations) -> Map<String, Value> {
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
    schema
}
