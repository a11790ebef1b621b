use trunkline_protocol::RawJson;
use trunkline_protocol::model::{Prompt, Tool};

use super::shape::{JsonType, Property, ValueShape};
use crate::terminal::{escape_line, truncate_to_width};

/// The number of enum choices that a signature lists before it elides the rest.
const MAX_CHOICES: usize = 5;

/// How many columns a default takes at most.
const MAX_DEFAULT_COLUMNS: usize = 24;

/// Writes a tool as the head of a function: `add(a: int, [b: int = 1])`.
pub(crate) fn tool_signature(tool: &Tool) -> String {
    let result = tool
        .output_schema
        .as_ref()
        .map(|schema| format!(" -> {}", result_type(&ValueShape::from_schema(schema))));
    let arguments = arguments(&ValueShape::from_schema(&tool.input_schema));
    format!("{}({arguments}){}", escape_line(&tool.name), result.unwrap_or_default())
}

/// Writes a prompt as the head of a function; its arguments are always text.
pub(crate) fn prompt_signature(prompt: &Prompt) -> String {
    let arguments = prompt.arguments.iter().map(|argument| {
        let name = escape_line(&argument.name);
        if argument.required == Some(true) { name.into_owned() } else { format!("[{name}]") }
    });
    format!("{}({})", escape_line(&prompt.name), arguments.collect::<Vec<_>>().join(", "))
}

/// Writes the arguments of a function: those that must be given first, the others in brackets.
fn arguments(shape: &ValueShape) -> String {
    let (required, optional): (Vec<_>, Vec<_>) =
        shape.properties.iter().partition(|property| property.required);
    let mut words: Vec<String> = required.into_iter().map(argument).collect();
    words.extend(optional.into_iter().map(|property| format!("[{}]", argument(property))));
    if shape.allows_additional {
        words.push("…".to_owned());
    }
    words.join(", ")
}

/// Cuts a default that is long; one in quotes keeps both.
fn shorten_literal(literal: &str) -> String {
    let cut = truncate_to_width(literal, MAX_DEFAULT_COLUMNS);
    if cut.len() < literal.len() && cut.starts_with('"') { format!("{cut}\"") } else { cut }
}

fn argument(property: &Property) -> String {
    let name = escape_line(&property.name);
    let default = property.shape.default.as_ref().filter(|default| !default.is_null());
    let default = default.map(|default| format!(" = {}", shorten_literal(&literal(default))));
    match type_text(&property.shape, property.required) {
        Some(words) => format!("{name}: {words}{}", default.unwrap_or_default()),
        None => format!("{name}{}", default.unwrap_or_default()),
    }
}

/// Names the types of a value; nothing if it may be anything. For an optional value, null is omitted.
pub(crate) fn type_text(shape: &ValueShape, with_null: bool) -> Option<String> {
    if !shape.choices.is_empty() {
        let mut words: Vec<_> =
            shape.choices.iter().take(MAX_CHOICES).map(|choice| literal(&choice.value)).collect();
        if shape.choices.len() > MAX_CHOICES {
            words.push("…".to_owned());
        }
        return Some(words.join(" | "));
    }
    let kinds =
        shape.types.iter().filter(|kind| with_null || **kind != JsonType::Null || shape.types.len() == 1);
    let words: Vec<_> = kinds.map(|kind| type_name(*kind, shape)).collect();
    (!words.is_empty()).then(|| words.join(" | "))
}

fn type_name(kind: JsonType, shape: &ValueShape) -> String {
    match kind {
        JsonType::String => "str".to_owned(),
        JsonType::Integer => "int".to_owned(),
        JsonType::Number => "float".to_owned(),
        JsonType::Boolean => "bool".to_owned(),
        JsonType::Null => "null".to_owned(),
        JsonType::Object => "object".to_owned(),
        JsonType::Array => match shape.items.as_ref().and_then(|items| type_text(items, true)) {
            Some(words) if words.contains(' ') => format!("({words})[]"),
            Some(words) => format!("{words}[]"),
            None => "list".to_owned(),
        },
    }
}

/// Names what a tool returns, one level deep.
fn result_type(shape: &ValueShape) -> String {
    if !shape.is_exactly(JsonType::Object) || shape.properties.is_empty() {
        return type_text(shape, true).unwrap_or_else(|| "any".to_owned());
    }
    let members = shape.properties.iter().map(|property| {
        let optional = if property.required { "" } else { "?" };
        let words = type_text(&property.shape, property.required);
        let words = words.map(|words| format!(": {words}")).unwrap_or_default();
        format!("{}{optional}{words}", escape_line(&property.name))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

/// Writes a value as one would type it in a program.
pub(crate) fn literal(value: &RawJson) -> String {
    escape_line(value.as_str()).into_owned()
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::model::PromptArgument;

    use super::*;

    #[track_caller]
    fn check(name: &str, schema: &str, expected: &str) {
        let tool = Tool::new(name, RawJson::parse(schema.to_owned()).unwrap());
        assert_eq!(tool_signature(&tool), expected, "{schema}");
    }

    fn properties(properties: &str, required: &str) -> String {
        format!(r#"{{"type":"object","properties":{{{properties}}},"required":[{required}]}}"#)
    }

    #[test]
    fn tools_read_as_the_heads_of_functions() {
        check("now", "{}", "now()");
        check(
            "add",
            &properties(r#""b":{"type":"integer","default":1},"a":{"type":"integer"}"#, r#""a""#),
            "add(a: int, [b: int = 1])",
        );
        check(
            "f",
            &properties(
                r#""s":{"type":"string"},"n":{"type":"number"},"t":{"type":"boolean"},"l":{"type":"array","items":{"type":"string"}},
                   "m":{"type":"array"},"o":{"type":"object"},"x":{},"u":{"type":["string","null"]}"#,
                r#""s","n","t","l","m","o","x","u""#,
            ),
            "f(s: str, n: float, t: bool, l: str[], m: list, o: object, x, u: str | null)",
        );
        check("f", &properties(r#""u":{"type":["string","null"],"default":null}"#, ""), "f([u: str])");
        check(
            "f",
            &properties(r#""l":{"type":"array","items":{"type":["integer","null"]}}"#, ""),
            "f([l: (int | null)[]])",
        );
        check("open", r#"{"type":"object","additionalProperties":{"type":"string"}}"#, "open(…)");
    }

    #[test]
    fn choices_are_named_up_to_a_few() {
        check("f", &properties(r#""e":{"type":"string","enum":["a","b"]}"#, ""), r#"f([e: "a" | "b"])"#);
        check("f", &properties(r#""e":{"enum":[1,2,3,4,5,6]}"#, ""), "f([e: 1 | 2 | 3 | 4 | 5 | …])");
    }

    #[test]
    fn output_schema_is_part_of_the_signature() {
        let mut tool = Tool::new("f", RawJson::EMPTY_OBJECT);
        for (schema, words) in [
            (
                r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a"]}"#,
                "{a: int, b?}",
            ),
            (r#"{"type":"array","items":{"type":"object"}}"#, "object[]"),
            ("{}", "any"),
        ] {
            tool.output_schema = Some(RawJson::parse(schema).unwrap());
            assert_eq!(tool_signature(&tool), format!("f() -> {words}"));
        }
    }

    #[test]
    fn names_and_defaults_of_a_hostile_server_only_show() {
        check(
            "a\u{1b}[2J",
            &properties(r#""x\r":{"default":"\u001b]0;t\u0007 and so on and on and on"}"#, ""),
            "a\\x1b[2J([x\\r = \"\\u001b]0;t\\u0007 and s…\"])",
        );
    }

    #[test]
    fn prompts_read_alike() {
        let mut prompt = Prompt::new("review");
        prompt.arguments = vec![PromptArgument::required("code"), PromptArgument::new("style")];
        assert_eq!(prompt_signature(&prompt), "review(code, [style])");
    }
}
