//! The cost to validate a value against a schema, computed before the validation.
//!
//! A schema of a few lines can refer to itself so that the cost doubles with every line, or with every level of the
//! value, and one peer sends both. So an upper bound is computed first: the number of schemas visited for one path
//! into the value, times the number of its parts.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// Keywords with schemas for the same value.
const SAME_VALUE_KEYWORDS: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Keywords with named schemas for the same value.
const SAME_VALUE_MAP_KEYWORDS: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords with schemas for parts of the value.
const CHILD_KEYWORDS: [&str; 8] = [
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords with named schemas for parts of the value.
const CHILD_MAP_KEYWORDS: [&str; 2] = ["properties", "patternProperties"];

/// References that are not supported here.
const UNSUPPORTED_REFERENCES: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// Computes the cost of one schema.
struct SchemaCost<'s> {
    root: &'s Value,
    /// Known costs, by the address of a schema and the remaining levels.
    known: HashMap<(usize, usize), u64>,
    /// Schemas being computed: one that recurs within itself without a level of the value would never end.
    in_progress: HashSet<(usize, usize)>,
    steps_left: usize,
}

/// The most computation steps, each for one schema and one level of the value.
const MAX_STEPS: usize = 200_000;

/// Returns the number of schemas visited for one path into a value of `levels` levels; `None` if it cannot be
/// computed.
pub(super) fn cost_per_path(schema: &Value, levels: usize) -> Option<u64> {
    let mut cost = SchemaCost {
        root: schema,
        known: HashMap::new(),
        in_progress: HashSet::new(),
        steps_left: MAX_STEPS,
    };
    cost.schema_cost(schema, levels, 0)
}

/// Returns the number of parts of a value, and of its levels.
pub(super) fn value_size(value: &Value) -> (u64, usize) {
    let children: Vec<(u64, usize)> = match value {
        Value::Array(items) => items.iter().map(value_size).collect(),
        Value::Object(members) => members.values().map(value_size).collect(),
        _ => return (1, 1),
    };
    let parts = children.iter().map(|(parts, _)| parts).sum::<u64>() + 1;
    (parts, children.iter().map(|(_, levels)| *levels).max().unwrap_or(0) + 1)
}

/// The most nested references and combinations; messages nest no deeper, and neither do honest schemas.
const MAX_DEPTH: usize = 256;

impl<'s> SchemaCost<'s> {
    fn schema_cost(&mut self, schema: &'s Value, levels: usize, depth: usize) -> Option<u64> {
        let Value::Object(members) = schema else { return Some(1) };
        let key = (std::ptr::from_ref(schema).addr(), levels);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        self.steps_left = self.steps_left.checked_sub(1)?;
        // An inner `$id` changes the base of references.
        let has_inner_id = depth > 0 && members.contains_key("$id");
        let has_unsupported_reference =
            UNSUPPORTED_REFERENCES.iter().any(|keyword| members.contains_key(*keyword));
        if depth > MAX_DEPTH || has_inner_id || has_unsupported_reference || !self.in_progress.insert(key) {
            return None;
        }
        let cost = self.members_cost(members, levels, depth + 1);
        self.in_progress.remove(&key);
        self.known.insert(key, cost?);
        cost
    }

    fn members_cost(&mut self, members: &'s Map<String, Value>, levels: usize, depth: usize) -> Option<u64> {
        let mut here: u64 = 0;
        let mut within: u64 = 0;
        let mut own: u64 = 1;
        for (keyword, value) in members {
            match keyword.as_str() {
                "$ref" => here = here.saturating_add(self.schema_cost(self.target(value)?, levels, depth)?),
                "enum" | "required" => own += value.as_array().map_or(0, Vec::len) as u64,
                known if SAME_VALUE_KEYWORDS.contains(&known) => {
                    here = here.saturating_add(self.list_cost(value, levels, depth)?);
                }
                known if SAME_VALUE_MAP_KEYWORDS.contains(&known) => {
                    here = here.saturating_add(self.named_cost(value, levels, depth)?);
                }
                // The children of a value at the last level are never visited.
                _ if levels == 0 => {}
                known if CHILD_KEYWORDS.contains(&known) => {
                    within = within.saturating_add(self.list_cost(value, levels - 1, depth)?);
                }
                known if CHILD_MAP_KEYWORDS.contains(&known) => {
                    within = within.saturating_add(self.named_cost(value, levels - 1, depth)?);
                }
                _ => {}
            }
        }
        // `unevaluated*` evaluates all the other keywords once more.
        if members.keys().any(|keyword| keyword.starts_with("unevaluated")) {
            here = here.saturating_mul(2);
        }
        Some(own.saturating_add(here).saturating_add(within))
    }

    /// Returns the cost of a schema, or of a list of schemas.
    fn list_cost(&mut self, value: &'s Value, levels: usize, depth: usize) -> Option<u64> {
        match value {
            Value::Array(schemas) => self.sum(schemas.iter(), levels, depth),
            schema => self.schema_cost(schema, levels, depth),
        }
    }

    /// Returns the cost of named schemas.
    fn named_cost(&mut self, value: &'s Value, levels: usize, depth: usize) -> Option<u64> {
        self.sum(value.as_object().into_iter().flat_map(Map::values), levels, depth)
    }

    fn sum(&mut self, schemas: impl Iterator<Item = &'s Value>, levels: usize, depth: usize) -> Option<u64> {
        let mut sum: u64 = 0;
        for schema in schemas {
            sum = sum.saturating_add(self.schema_cost(schema, levels, depth)?);
        }
        Some(sum)
    }

    fn target(&self, reference: &Value) -> Option<&'s Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return None;
        }
        self.root.pointer(pointer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A schema of `lines` definitions, each visited twice as often as the one before.
    fn doubling(lines: usize) -> Value {
        let mut defs = Map::new();
        for line in 0..lines {
            let next = json!({ "$ref": format!("#/$defs/{}", line + 1) });
            defs.insert(line.to_string(), json!({ "anyOf": [next, next] }));
        }
        defs.insert(lines.to_string(), json!(false));
        json!({ "$ref": "#/$defs/0", "$defs": defs })
    }

    #[test]
    fn exponential_schema_references_have_exponential_cost() {
        assert!(cost_per_path(&doubling(3), 1).unwrap() < 64);
        assert!(cost_per_path(&doubling(60), 1).unwrap() > 1 << 50);
    }

    #[test]
    fn schema_doubling_per_value_level_has_exponential_cost() {
        let node = json!({ "properties": { "x": { "$ref": "#" } }, "required": ["y"] });
        let schema = json!({ "anyOf": [node, node] });
        assert!(cost_per_path(&schema, 2).unwrap() < 64);
        assert!(cost_per_path(&schema, 60).unwrap() > 1 << 50);
    }

    #[test]
    fn recursive_schema_without_branching_is_cheap() {
        let schema = json!({ "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#" } } } });
        assert!(cost_per_path(&schema, 60).unwrap() < 1000);
    }

    #[test]
    fn endless_or_remote_references_have_no_known_cost() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "anyOf": [{ "$ref": "#" }] }),
            json!({ "$ref": "#/$defs/none" }),
            json!({ "$ref": "other.json" }),
            json!({ "$ref": "#anchor" }),
            json!({ "$dynamicRef": "#x" }),
            json!({ "properties": { "a": { "$id": "inner", "$ref": "#" } } }),
        ] {
            assert_eq!(cost_per_path(&schema, 4), None, "{schema}");
        }
    }

    #[test]
    fn value_size_counts_parts_and_levels() {
        assert_eq!(value_size(&json!(1)), (1, 1));
        assert_eq!(value_size(&json!({ "a": [1, 2], "b": {} })), (5, 3));
    }
}
