use trunkline_protocol::RawJson;
use trunkline_protocol::json::JsonKind;

use super::shape::{EnumChoice, JsonType, ValueShape};
use super::signature::literal;

/// Turns what was typed into the value that a schema wants.
///
/// # Errors
/// What the value must be, to follow its name.
pub(crate) fn coerce(typed: &str, shape: &ValueShape) -> Result<RawJson, String> {
    if !shape.choices.is_empty() {
        return coerce_choice(typed, shape);
    }
    if shape.types.is_empty() {
        // Without a type, what looks like JSON is JSON; quotes make a string of anything.
        return Ok(RawJson::parse(typed.to_owned()).unwrap_or_else(|_| RawJson::from_text(typed)));
    }
    // Everything is a string, so that strings come last.
    let mut kinds = shape.types.iter().filter(|kind| **kind != JsonType::String);
    if let Some(value) = kinds.find_map(|kind| coerce_to_type(typed, *kind, shape)) {
        return Ok(value);
    }
    if shape.types.contains(&JsonType::String) {
        return Ok(RawJson::from_text(typed));
    }
    // A list of one element need not be written as a list.
    if let Some(items) = shape.items.as_ref().filter(|_| shape.types.contains(&JsonType::Array)) {
        let item = coerce(typed, items)?;
        return Ok(RawJson::parse(format!("[{item}]")).unwrap_or(item));
    }
    let wanted: Vec<_> = shape.types.iter().map(|kind| type_noun(*kind)).collect();
    Err(format!("must be {}", wanted.join(" or ")))
}

fn coerce_choice(typed: &str, shape: &ValueShape) -> Result<RawJson, String> {
    let says = |value: &RawJson| value.as_text().as_deref() == Some(typed) || value.as_str() == typed;
    let chosen = shape.choices.iter().find(|choice| says(&choice.value)).or_else(|| {
        let titled = |title: &String| title.eq_ignore_ascii_case(typed);
        shape.choices.iter().find(|choice| choice.title.as_ref().is_some_and(titled))
    });
    let chosen = chosen.or_else(|| {
        // In another case only where one choice alone can be meant.
        let same = |choice: &&EnumChoice| {
            choice.value.as_text().is_some_and(|text| text.to_lowercase() == typed.to_lowercase())
        };
        let mut alike = shape.choices.iter().filter(same);
        alike.next().filter(|_| alike.next().is_none())
    });
    if let Some(choice) = chosen {
        return Ok(choice.value.clone());
    }
    if typed == "null" && shape.types.contains(&JsonType::Null) {
        return Ok(RawJson::NULL);
    }
    let names: Vec<_> = shape
        .choices
        .iter()
        .map(|choice| {
            choice.value.as_text().map_or_else(|| literal(&choice.value), |text| literal_text(&text))
        })
        .collect();
    Err(format!("must be one of {}", names.join(", ")))
}

fn literal_text(text: &str) -> String {
    crate::terminal::escape_line(text).into_owned()
}

fn coerce_to_type(typed: &str, kind: JsonType, shape: &ValueShape) -> Option<RawJson> {
    let json = |wanted: JsonKind| {
        let value = RawJson::parse(typed.trim().to_owned()).ok()?;
        (value.kind() == wanted).then_some(value)
    };
    match kind {
        JsonType::Integer => {
            json(JsonKind::Number).filter(|number| !number.as_str().contains(['.', 'e', 'E']))
        }
        JsonType::Number => json(JsonKind::Number),
        JsonType::Boolean => match typed.to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" | "on" => Some(RawJson::TRUE),
            "false" | "no" | "n" | "off" => RawJson::parse("false").ok(),
            _ => None,
        },
        // Where a string is allowed, the word is a string; use `:=` for null.
        JsonType::Null if shape.types.contains(&JsonType::String) => None,
        JsonType::Null => json(JsonKind::Null),
        JsonType::Array => json(JsonKind::Array),
        JsonType::Object => json(JsonKind::Object),
        JsonType::String => Some(RawJson::from_text(typed)),
    }
}

fn type_noun(kind: JsonType) -> &'static str {
    match kind {
        JsonType::String => "text",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::Boolean => "true or false",
        JsonType::Null => "null",
        JsonType::Array => "a list such as [1,2]",
        JsonType::Object => "an object such as {\"a\":1}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, typed: &str, expected: Result<&str, &str>) {
        let shape = ValueShape::from_schema(&RawJson::parse(schema.to_owned()).unwrap());
        match (coerce(typed, &shape), expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value.as_str(), expected, "{schema} {typed}"),
            (Err(problem), Err(part)) => assert!(problem.contains(part), "{schema} {typed}: {problem}"),
            (found, expected) => panic!("{schema} {typed}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn values_are_coerced_to_the_schema() {
        let list = r#"{"type":"array","items":{"type":"integer"}}"#;
        for (schema, typed, expected) in [
            (r#"{"type":"string"}"#, "7", Ok(r#""7""#)),
            (r#"{"type":"string"}"#, "null", Ok(r#""null""#)),
            (r#"{"type":"string"}"#, "say \"hi\"", Ok(r#""say \"hi\"""#)),
            (r#"{"type":"integer"}"#, "-7", Ok("-7")),
            (r#"{"type":"integer"}"#, "123456789012345678901234567890", Ok("123456789012345678901234567890")),
            (r#"{"type":"integer"}"#, "7.5", Err("must be a whole number")),
            (r#"{"type":"integer"}"#, "1e3", Err("must be a whole number")),
            (r#"{"type":"integer"}"#, "seven", Err("must be a whole number")),
            (r#"{"type":"number"}"#, "7.50", Ok("7.50")),
            (r#"{"type":"number"}"#, "NaN", Err("must be a number")),
            (r#"{"type":"boolean"}"#, "Yes", Ok("true")),
            (r#"{"type":"boolean"}"#, "off", Ok("false")),
            (r#"{"type":"boolean"}"#, "y", Ok("true")),
            (r#"{"type":"boolean"}"#, "N", Ok("false")),
            (r#"{"type":"boolean"}"#, "1", Err("must be true or false")),
            (r#"{"type":"null"}"#, "null", Ok("null")),
            (r#"{"type":["string","null"]}"#, "null", Ok(r#""null""#)),
            (r#"{"type":["integer","null"]}"#, "null", Ok("null")),
            (r#"{"type":["string","integer"]}"#, "7", Ok("7")),
            (r#"{"type":["string","integer"]}"#, "x", Ok(r#""x""#)),
            (list, "[1,2]", Ok("[1,2]")),
            (list, "1", Ok("[1]")),
            (list, "x", Err("must be a whole number")),
            (r#"{"type":"array"}"#, "x", Err("must be a list")),
            (r#"{"type":"object"}"#, r#"{"a":1}"#, Ok(r#"{"a":1}"#)),
            (r#"{"type":"object"}"#, "a", Err("must be an object")),
            ("{}", "7", Ok("7")),
            ("{}", "seven", Ok(r#""seven""#)),
            ("{}", "[1", Ok(r#""[1""#)),
        ] {
            check(schema, typed, expected);
        }
    }

    #[test]
    fn choices_are_taken_by_value_or_by_title() {
        let colours = r#"{"oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}"#;
        for (schema, typed, expected) in [
            (r#"{"enum":["a",1,null]}"#, "a", Ok(r#""a""#)),
            (r#"{"enum":["a",1,null]}"#, "1", Ok("1")),
            (r#"{"enum":["a",1,null]}"#, "null", Ok("null")),
            (r#"{"enum":["a",1]}"#, "b", Err("must be one of a, 1")),
            (colours, "g", Ok(r#""g""#)),
            (colours, "red", Ok(r#""r""#)),
            (colours, "blue", Err("must be one of r, g")),
            (r#"{"enum":["Aisle","Window"]}"#, "aisle", Ok(r#""Aisle""#)),
            (r#"{"enum":["Ab","aB"]}"#, "aB", Ok(r#""aB""#)),
            (r#"{"enum":["Ab","aB"]}"#, "ab", Err("must be one of Ab, aB")),
        ] {
            check(schema, typed, expected);
        }
    }
}
