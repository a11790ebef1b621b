//! Schemas of structured results, which some clients compile as soon as they have listed them.
//!
//! If its compiler rejects one schema, such a client rejects the whole list. So only a schema that certainly compiles
//! is relayed: every keyword has a value of its type, every engine parses its patterns, and references stay within
//! the schema. A tool works without one: its results are not validated then.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::json::{JsonKind, RawJson};

use super::super::MalformedModel;
use super::regex::is_pattern;
use super::schema::schema_members;
use super::{CheckOutcome, RepairLog, malformed};

/// The most subschemas of one schema that are visited.
const MAX_SCHEMAS: usize = 1000;

/// The most references to different schemas; compilers follow them by recursion.
const MAX_REFERENCES: usize = 100;

/// The longest schema.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;

pub(super) fn output_schema(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    if raw.kind() != JsonKind::Object {
        return malformed("must be an object");
    }
    if raw.as_str().len() > MAX_SCHEMA_BYTES {
        return malformed("is too long");
    }
    let mut members = raw.members()?;
    let mut is_changed = schema_members(&mut members, repairs)?;
    // With its own `$id` a schema would replace the schema of another server with the same `$id`.
    is_changed |= members.take("$id").is_some();
    let schema = members.to_raw();
    let Ok(root) = schema.decode::<Value>() else { return malformed("is not JSON") };
    let mut check = OutputSchemaCheck {
        root: &root,
        schemas: MAX_SCHEMAS,
        references: HashSet::new(),
        targets: Vec::new(),
    };
    if !check.is_valid() || has_name(&root) {
        return Err(MalformedModel::new("is not a schema that every client can use"));
    }
    Ok(is_changed.then_some(schema))
}

/// Reports whether any part of a schema has a name by which it could be referred to.
fn has_name(value: &Value) -> bool {
    const NAMES: [&str; 3] = ["$id", "$anchor", "$dynamicAnchor"];
    match value {
        Value::Object(members) => {
            NAMES.iter().any(|name| members.get(*name).is_some_and(Value::is_string))
                || members.values().any(has_name)
        }
        Value::Array(elements) => elements.iter().any(has_name),
        _ => false,
    }
}

/// The check of one schema and everything within it.
struct OutputSchemaCheck<'s> {
    root: &'s Value,
    /// The number of schemas that may still be visited.
    schemas: usize,
    /// The references that were seen.
    references: HashSet<&'s str>,
    /// Their targets that were not visited yet.
    targets: Vec<&'s Value>,
}

impl<'s> OutputSchemaCheck<'s> {
    fn is_valid(&mut self) -> bool {
        self.targets.push(self.root);
        while let Some(target) = self.targets.pop() {
            if !self.is_schema(target) {
                return false;
            }
        }
        !self.references.iter().any(|pointer| self.is_circular(pointer))
    }

    /// Reports whether a reference leads to another, and so on, back to itself: no value fits or does not fit such a schema,
    /// and compilers follow it without end.
    fn is_circular(&self, pointer: &str) -> bool {
        let mut next = pointer;
        for _ in 0..=self.references.len() {
            let target = self.root.pointer(next).and_then(|target| target.get("$ref"));
            match target.and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#')) {
                Some(further) => next = further,
                None => return false,
            }
        }
        true
    }

    fn is_schema(&mut self, value: &'s Value) -> bool {
        let Some(left) = self.schemas.checked_sub(1) else { return false };
        self.schemas = left;
        match value {
            Value::Bool(_) => true,
            Value::Object(keywords) => {
                is_nullable(keywords)
                    && keywords.iter().all(|(keyword, value)| self.is_keyword(keyword, value))
            }
            _ => false,
        }
    }

    /// Reports whether a keyword has a value of its kind. One that means nothing may have any.
    fn is_keyword(&mut self, keyword: &str, value: &'s Value) -> bool {
        match keyword {
            "type" => is_type(value),
            "properties" | "$defs" | "definitions" | "dependentSchemas" => self.is_map(value),
            "patternProperties" => has_patterns(value) && self.is_map(value),
            "dependencies" => each_member(value, |value| is_names(value) || self.is_schema(value)),
            "dependentRequired" => each_member(value, is_names),
            "additionalProperties"
            | "additionalItems"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "propertyNames"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contentSchema" => self.is_schema(value),
            "items" => self.is_list(value) || self.is_schema(value),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.is_list(value),
            "required" => is_names(value),
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
            | "minContains" | "maxContains" => value.is_u64(),
            "pattern" => value.as_str().is_some_and(is_pattern),
            "format" => value.as_str().is_some_and(is_format),
            "uniqueItems" => value.is_boolean(),
            "$ref" => value.as_str().is_some_and(|reference| self.is_reference(reference)),
            // What compilers reject, or take for something else than the other revision of them does.
            "id" | "$id" | "$async" | "$dynamicRef" | "$recursiveRef" | "$recursiveAnchor"
            | "$vocabulary" | "discriminator" => false,
            _ => true,
        }
    }

    fn is_map(&mut self, value: &'s Value) -> bool {
        each_member(value, |value| self.is_schema(value))
    }

    fn is_list(&mut self, value: &'s Value) -> bool {
        let schemas = value.as_array().filter(|schemas| !schemas.is_empty());
        schemas.is_some_and(|schemas| schemas.iter().all(|schema| self.is_schema(schema)))
    }

    /// Reports whether a reference leads to a subschema, which is then visited too.
    fn is_reference(&mut self, reference: &'s str) -> bool {
        let Some(pointer) = reference.strip_prefix('#').filter(|pointer| !pointer.contains('%')) else {
            return false;
        };
        if !self.references.insert(pointer) {
            return true;
        }
        let target = self.root.pointer(pointer);
        self.targets.extend(target);
        target.is_some() && self.references.len() <= MAX_REFERENCES
    }
}

fn each_member<'s>(value: &'s Value, is: impl FnMut(&'s Value) -> bool) -> bool {
    value.as_object().is_some_and(|members| members.values().all(is))
}

fn has_patterns(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.keys().all(|pattern| is_pattern(pattern)))
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

fn is_type(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];
    let is_one = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    is_one(value) || value.as_array().is_some_and(|types| !types.is_empty() && types.iter().all(is_one))
}

/// Checks a keyword of OpenAPI that some compilers know.
fn is_nullable(keywords: &Map<String, Value>) -> bool {
    match (keywords.get("nullable"), keywords.get("type")) {
        (None, _) | (Some(Value::Bool(true)), Some(_)) => true,
        (Some(Value::Bool(false)), Some(Value::String(name))) => name != "null",
        _ => false,
    }
}

/// Checks the name of a format. Unknown ones are ignored by compilers, unless they are names that every JavaScript object knows.
fn is_format(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.bytes().all(is_plain) && name != "constructor"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(schema: &Value) -> Result<Option<Value>, String> {
        let checked = output_schema(&RawJson::from(schema), &mut RepairLog::default());
        checked.map(|raw| raw.map(|raw| raw.decode().unwrap())).map_err(|problem| problem.to_string())
    }

    #[test]
    fn output_schemas_that_all_compilers_accept_are_relayed() {
        for schema in [
            json!({}),
            json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"] }),
            json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array",
                "items": { "$ref": "#/$defs/n" }, "$defs": { "n": { "type": "number", "minimum": 0 } } }),
            json!({ "anyOf": [{ "$ref": "#" }, { "enum": [1] }, { "const": null }, true] }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "not": { "$ref": "#" } } } }),
            json!({ "patternProperties": { "^x-": false }, "additionalProperties": { "pattern": "^[a-z]+$" } }),
            json!({ "dependencies": { "a": ["b"], "c": {} }, "dependentRequired": { "a": ["b"] } }),
            json!({ "type": "string", "nullable": true, "format": "date-time", "x-own": [{ "type": 7 }] }),
        ] {
            assert_eq!(outcome(&schema), Ok(None), "{schema}");
        }
    }

    #[test]
    fn output_schemas_that_a_compiler_rejects_are_dropped() {
        for schema in [
            json!(true),
            json!([]),
            json!("object"),
            json!({ "type": "strin" }),
            json!({ "type": [] }),
            json!({ "properties": { "a": { "type": 7 } } }),
            json!({ "properties": { "a": "string" } }),
            json!({ "properties": [1] }),
            json!({ "items": 7 }),
            json!({ "allOf": [] }),
            json!({ "enum": [] }),
            json!({ "minimum": "1" }),
            json!({ "exclusiveMinimum": true }),
            json!({ "multipleOf": 0 }),
            json!({ "minLength": -1 }),
            json!({ "uniqueItems": "yes" }),
            json!({ "not": { "pattern": "(" } }),
            json!({ "patternProperties": { "[": {} } }),
            json!({ "$ref": "#/$defs/none" }),
            json!({ "$ref": "https://x.example/schema" }),
            json!({ "$ref": "#/examples", "examples": { "type": 7 } }),
            json!({ "$ref": "#" }),
            json!({ "items": { "$ref": "#/items" } }),
            json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "not": { "$ref": "#/$defs/a" } }),
            json!({ "format": "constructor" }),
            json!({ "nullable": true }),
            json!({ "id": "x" }),
            json!({ "$async": true }),
            json!({ "x-own": { "$id": "https://x.example/other" } }),
            json!({ "$defs": { "a": { "$anchor": "b" } } }),
            json!({ "description": "a".repeat(MAX_SCHEMA_BYTES) }),
        ] {
            assert!(outcome(&schema).is_err(), "{schema:.80}");
        }
        let many = |count: usize| {
            let defs: Map<String, Value> = (0..count)
                .map(|n| (n.to_string(), json!({ "$ref": format!("#/$defs/{}", n + 1) })))
                .collect();
            let mut schema = json!({ "$ref": "#/$defs/0", "$defs": defs });
            schema["$defs"][count.to_string()] = json!({});
            schema
        };
        assert_eq!(outcome(&many(50)), Ok(None));
        assert!(outcome(&many(MAX_REFERENCES)).is_err(), "compilers recurse into references");
        let wide = json!({ "prefixItems": vec![json!({}); MAX_SCHEMAS] });
        assert!(outcome(&wide).is_err());
    }

    #[test]
    fn output_schema_id_is_removed() {
        let schema =
            json!({ "$id": "https://x.example/good", "type": "object", "properties": { "a": true } });
        let expected = json!({ "type": "object", "properties": { "a": {} } });
        assert_eq!(outcome(&schema), Ok(Some(expected)));
    }
}
