use clap::ValueEnum;
use serde_json::{Map, Value, json};
use trunkline_protocol::model::Tool;

/// How deep references are followed; deeper ones allow anything.
const MAX_DEPTH: usize = 12;

/// The longest name that all of them take.
const MAX_NAME_LENGTH: usize = 64;

/// The vendor of the model API that the tools are exported for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Vendor {
    Anthropic,
    Openai,
    Gemini,
}

/// Writes tools in the format of a model API, with the JSON Schema keywords it supports, and returns the names that changed.
pub(crate) fn export(tools: &[&Tool], vendor: Vendor) -> (Value, Vec<String>) {
    let mut names: Vec<String> = Vec::with_capacity(tools.len());
    let mut changed = Vec::new();
    let mut written = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = legal_name(&tool.name, &names);
        if name != tool.name {
            changed.push(format!("tool `{}` is renamed to `{name}` for this API", tool.name));
        }
        let description = tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default();
        let root: Value = tool.input_schema.get().unwrap_or_default();
        let schema = SchemaSimplifier { root: &root, vendor, budget: 4_096 }.arguments_schema(&root);
        written.push(match vendor {
            Vendor::Anthropic => json!({ "name": name, "description": description, "input_schema": schema }),
            Vendor::Openai => json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": schema },
            }),
            Vendor::Gemini if !has_properties(&schema) => json!({ "name": name, "description": description }),
            Vendor::Gemini => json!({ "name": name, "description": description, "parameters": schema }),
        });
        names.push(name);
    }
    match vendor {
        Vendor::Gemini => (json!([{ "functionDeclarations": written }]), changed),
        _ => (Value::Array(written), changed),
    }
}

/// This vendor refuses an object that has no properties.
fn has_properties(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty())
}

/// Makes a name of the characters that all of them take, and unlike those that are taken.
fn legal_name(name: &str, taken: &[String]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let mut legal: String = name.chars().map(plain).collect();
    if !legal.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        legal.insert(0, '_');
    }
    if legal.len() <= MAX_NAME_LENGTH && !taken.contains(&legal) {
        return legal;
    }
    // A truncated or duplicate name is made unique by a short hash of the whole name and its index.
    let hash = name
        .bytes()
        .chain([u8::try_from(taken.len() % 256).unwrap_or(0)])
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let start: String = legal.chars().take(MAX_NAME_LENGTH - 9).collect();
    format!("{start}_{hash:08x}")
}

/// Keywords that every one of them understands.
const COMMON_KEYWORDS: &[&str] = &[
    "type",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "anyOf",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
];

/// Keywords that only some of them understand.
const EXTENDED_KEYWORDS: &[&str] = &[
    "title",
    "default",
    "format",
    "const",
    "oneOf",
    "allOf",
    "additionalProperties",
    "minLength",
    "maxLength",
    "pattern",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    "multipleOf",
];

struct SchemaSimplifier<'s> {
    root: &'s Value,
    vendor: Vendor,
    /// How many schemas may still be written, so that references within references come to an end.
    budget: usize,
}

impl SchemaSimplifier<'_> {
    /// Simplifies the schema of the arguments, which is always an object and has no alternatives at its top.
    fn arguments_schema(&mut self, schema: &Value) -> Value {
        let mut simple = self.simplify(schema, 0);
        if let Some(members) = simple.as_object_mut() {
            for combinator in ["anyOf", "oneOf", "allOf"] {
                let parts = members.remove(combinator);
                for part in parts.iter().filter_map(Value::as_array).flatten() {
                    // Only what all parts require is required; the rest is left to the server.
                    merge_properties(members, part, combinator == "allOf");
                }
            }
            members.insert("type".to_owned(), "object".into());
            members.entry("properties").or_insert_with(|| json!({}));
        }
        simple
    }

    fn simplify(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(members) = schema.as_object().filter(|_| depth < MAX_DEPTH && self.budget > 0) else {
            return json!({});
        };
        self.budget -= 1;
        let mut simple = Map::new();
        if let Some(target) =
            members.get("$ref").and_then(Value::as_str).and_then(|place| self.resolve_reference(place))
            && let Value::Object(target) = self.simplify(&target, depth + 1)
        {
            simple = target;
        }
        for (keyword, value) in members {
            let rich = self.vendor != Vendor::Gemini;
            if !(COMMON_KEYWORDS.contains(&keyword.as_str())
                || (rich && EXTENDED_KEYWORDS.contains(&keyword.as_str())))
            {
                continue;
            }
            let value = match keyword.as_str() {
                "properties" => self.simplify_properties(value, depth),
                "items" | "additionalProperties" if value.is_object() => self.simplify(value, depth + 1),
                "anyOf" | "oneOf" | "allOf" => {
                    let parts = value.as_array().into_iter().flatten();
                    parts.map(|part| self.simplify(part, depth + 1)).collect()
                }
                _ => value.clone(),
            };
            simple.insert(keyword.clone(), value);
        }
        if self.vendor == Vendor::Gemini {
            self.narrow_for_gemini(&mut simple, members, depth);
        }
        Value::Object(simple)
    }

    fn simplify_properties(&mut self, properties: &Value, depth: usize) -> Value {
        let properties = properties.as_object().into_iter().flatten();
        properties
            .map(|(name, schema)| (name.clone(), self.simplify(schema, depth + 1)))
            .collect::<Map<_, _>>()
            .into()
    }

    fn resolve_reference(&self, place: &str) -> Option<Value> {
        self.root.pointer(place.strip_prefix('#')?).cloned()
    }

    /// Rewrites keywords to the ones that this vendor supports: one type, `nullable`, enums of strings only.
    fn narrow_for_gemini(
        &mut self,
        simple: &mut Map<String, Value>,
        original: &Map<String, Value>,
        depth: usize,
    ) {
        if let Some(constant) = original.get("const") {
            simple.insert("enum".to_owned(), json!([constant]));
        }
        for keyword in ["oneOf", "allOf"] {
            let parts = original.get(keyword).and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                let part = self.simplify(part, depth + 1);
                match keyword {
                    "oneOf" => push(simple, "anyOf", part),
                    _ => merge_properties(simple, &part, true),
                }
            }
        }
        keep_one_type(simple);
        let textual =
            |values: &Value| values.as_array().is_some_and(|values| values.iter().all(Value::is_string));
        match simple.get("enum") {
            Some(values) if textual(values) => {
                simple.insert("type".to_owned(), "string".into());
            }
            Some(_) => {
                simple.remove("enum");
            }
            None => {}
        }
        if simple.get("type").and_then(Value::as_str) == Some("array") {
            simple.entry("items").or_insert_with(|| json!({ "type": "string" }));
        }
    }
}

fn keep_one_type(simple: &mut Map<String, Value>) {
    let Some(types) = simple.get("type").and_then(Value::as_array).cloned() else { return };
    let nullable = types.iter().any(|kind| kind == "null");
    let kinds: Vec<_> = types.into_iter().filter(|kind| kind != "null").collect();
    simple.remove("type");
    match kinds.as_slice() {
        [] => {}
        [kind] => {
            simple.insert("type".to_owned(), kind.clone());
        }
        several => several.iter().for_each(|kind| push(simple, "anyOf", json!({ "type": kind }))),
    }
    if nullable {
        simple.insert("nullable".to_owned(), true.into());
    }
}

fn push(simple: &mut Map<String, Value>, keyword: &str, part: Value) {
    let list = simple.entry(keyword).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(part);
    }
}

fn merge_properties(into: &mut Map<String, Value>, part: &Value, and_required: bool) {
    let properties = part.get("properties").and_then(Value::as_object);
    let target = into.entry("properties").or_insert_with(|| json!({}));
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(target) = target.as_object_mut() {
            target.entry(name).or_insert_with(|| schema.clone());
        }
    }
    if let Some(required) = part.get("required").and_then(Value::as_array).filter(|_| and_required) {
        required.iter().for_each(|name| push(into, "required", name.clone()));
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::RawJson;

    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        let mut tool = Tool::new(name, RawJson::from(schema));
        tool.description = Some("Does it.".to_owned());
        tool
    }

    fn one(schema: Value, vendor: Vendor) -> Value {
        let tool = tool("f", schema);
        let (value, _) = export(&[&tool], vendor);
        match vendor {
            Vendor::Anthropic => value[0]["input_schema"].clone(),
            Vendor::Openai => value[0]["function"]["parameters"].clone(),
            Vendor::Gemini => value[0]["functionDeclarations"][0]["parameters"].clone(),
        }
    }

    #[test]
    fn each_vendor_gets_the_form_that_its_api_takes() {
        let add = tool(
            "add",
            json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] }),
        );
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
        for (vendor, expected) in [
            (
                Vendor::Anthropic,
                json!([{ "name": "add", "description": "Does it.", "input_schema": schema }]),
            ),
            (
                Vendor::Openai,
                json!([{ "type": "function", "function": { "name": "add", "description": "Does it.", "parameters": schema } }]),
            ),
            (
                Vendor::Gemini,
                json!([{ "functionDeclarations": [{ "name": "add", "description": "Does it.", "parameters": schema }] }]),
            ),
        ] {
            assert_eq!(export(&[&add], vendor), (expected, vec![]), "{vendor:?}");
        }
    }

    #[test]
    fn schemas_have_no_references_and_no_alternatives_at_their_top() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "P": { "type": "object", "properties": { "x": { "type": "number" } } } },
            "properties": { "at": { "$ref": "#/$defs/P", "description": "where" }, "far": { "$ref": "http://x/y" } },
            "anyOf": [{ "properties": { "b": { "type": "string" } }, "required": ["b"] }],
            "x-mcp": 1,
        });
        for vendor in [Vendor::Anthropic, Vendor::Openai] {
            assert_eq!(
                one(schema.clone(), vendor),
                json!({
                    "type": "object",
                    "properties": {
                        "at": { "type": "object", "description": "where", "properties": { "x": { "type": "number" } } },
                        "far": {},
                        "b": { "type": "string" },
                    },
                })
            );
        }
        let endless =
            json!({ "type": "object", "properties": { "me": { "$ref": "#" }, "too": { "$ref": "#" } } });
        assert!(one(endless, Vendor::Openai).to_string().len() < 200_000);
    }

    #[test]
    fn gemini_gets_one_type_and_choices_of_text() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": { "type": ["integer", "null"], "default": 1, "exclusiveMinimum": 0 },
                "u": { "type": ["string", "integer"] },
                "e": { "enum": ["a", "b"] },
                "k": { "const": "a" },
                "m": { "enum": [1, 2] },
                "l": { "type": "array" },
                "o": { "oneOf": [{ "type": "string" }, { "type": "boolean" }] },
            },
            "additionalProperties": false,
        });
        assert_eq!(
            one(schema, Vendor::Gemini)["properties"],
            json!({
                "n": { "type": "integer", "nullable": true },
                "u": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "e": { "type": "string", "enum": ["a", "b"] },
                "k": { "type": "string", "enum": ["a"] },
                "m": {},
                "l": { "type": "array", "items": { "type": "string" } },
                "o": { "anyOf": [{ "type": "string" }, { "type": "boolean" }] },
            })
        );
        assert_eq!(
            one(json!({ "type": "object" }), Vendor::Gemini),
            Value::Null,
            "an empty object is left out"
        );
    }

    #[test]
    fn names_become_legal_stay_short_and_stay_apart() {
        let long = "x".repeat(100);
        let tools = [("a.b", "a_b"), ("a b", ""), (long.as_str(), ""), ("1st", "_1st"), ("ok-1", "ok-1")];
        let made: Vec<_> = tools.iter().map(|(name, _)| tool(name, json!({ "type": "object" }))).collect();
        let (value, changed) = export(&made.iter().collect::<Vec<_>>(), Vendor::Anthropic);
        let names: Vec<_> =
            value.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        for ((_, expected), name) in tools.iter().zip(&names) {
            assert!(expected.is_empty() || expected == name, "{names:?}");
            assert!(
                name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
                "{name}"
            );
        }
        let mut distinct = names.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len());
        assert_eq!(changed.len(), 4, "{changed:?}");
    }
}
