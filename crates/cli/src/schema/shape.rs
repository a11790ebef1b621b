use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{JsonObject, RawJson};

/// How deep schemas are followed: whatever is typed at a terminal is flatter.
const MAX_DEPTH: usize = 8;

/// How many schemas are read of one in all, so that references within references come to an end.
const MAX_SCHEMAS: usize = 4_096;

/// The parts of a JSON Schema that matter for typing or showing a value.
///
/// It is read once, keeps the order of properties, and is never wrong: what cannot be read may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ValueShape {
    /// The types that the value may have, in the order of the schema; none means any.
    pub(crate) types: Vec<JsonType>,
    /// The values to choose from, if there is such a list.
    pub(crate) choices: Vec<EnumChoice>,
    /// What the elements of an array are.
    pub(crate) items: Option<Box<ValueShape>>,
    /// The properties of an object, in order.
    pub(crate) properties: Vec<Property>,
    /// Whether the schema invites properties that it does not list.
    pub(crate) allows_additional: bool,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<RawJson>,
    pub(crate) format: Option<String>,
}

/// One property of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) shape: ValueShape,
    pub(crate) required: bool,
}

/// One of the values to choose from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EnumChoice {
    pub(crate) value: RawJson,
    pub(crate) title: Option<String>,
}

/// A type of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    String,
    Integer,
    Number,
    Boolean,
    Null,
    Array,
    Object,
}

impl JsonType {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "null" => Self::Null,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }
}

impl ValueShape {
    /// Reads a schema.
    pub(crate) fn from_schema(schema: &RawJson) -> Self {
        ShapeReader { root: schema.clone(), budget: MAX_SCHEMAS }.read_schema(schema, 0)
    }

    /// Returns a property by its name.
    pub(crate) fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// Reports whether the value may have a type; a shape without types allows all.
    pub(crate) fn allows(&self, kind: JsonType) -> bool {
        self.types.is_empty() || self.types.contains(&kind)
    }

    /// Reports whether the value has exactly one type, null aside.
    pub(crate) fn is_exactly(&self, kind: JsonType) -> bool {
        let mut kinds = self.types.iter().filter(|kind| **kind != JsonType::Null);
        kinds.next() == Some(&kind) && kinds.next().is_none()
    }

    /// Takes up another schema that is an alternative to what was read so far.
    fn merge_alternative(&mut self, other: Self) {
        for kind in other.types {
            if !self.types.contains(&kind) {
                self.types.push(kind);
            }
        }
        self.choices.extend(other.choices);
        self.merge_parts(other.items, other.properties);
    }

    /// Takes up another schema that holds as well.
    fn merge_constraint(&mut self, other: Self) {
        if self.types.is_empty() {
            self.types = other.types;
        }
        if self.choices.is_empty() {
            self.choices = other.choices;
        }
        self.allows_additional |= other.allows_additional;
        self.merge_parts(other.items, other.properties);
        self.title = self.title.take().or(other.title);
        self.description = self.description.take().or(other.description);
        self.default = self.default.take().or(other.default);
        self.format = self.format.take().or(other.format);
    }

    fn merge_parts(&mut self, items: Option<Box<Self>>, properties: Vec<Property>) {
        self.items = self.items.take().or(items);
        for property in properties {
            if self.property(&property.name).is_none() {
                self.properties.push(property);
            }
        }
    }
}

struct ShapeReader {
    root: RawJson,
    budget: usize,
}

impl ShapeReader {
    fn read_schema(&mut self, schema: &RawJson, depth: usize) -> ValueShape {
        let members = schema.members().unwrap_or_default();
        if depth >= MAX_DEPTH || self.budget == 0 {
            return ValueShape { types: json_types(&members), ..ValueShape::default() };
        }
        self.budget -= 1;
        let mut shape = ValueShape {
            types: json_types(&members),
            choices: enum_choices(&members),
            items: members.get("items").map(|items| Box::new(self.read_schema(items, depth + 1))),
            properties: self.properties(&members, depth),
            allows_additional: allows_additional(&members),
            title: text(&members, "title"),
            description: text(&members, "description"),
            default: members.get("default").cloned(),
            format: text(&members, "format"),
        };
        for keyword in ["anyOf", "oneOf"] {
            if let Some(alternatives) = self.alternatives(&members, keyword, depth) {
                shape.merge_constraint(alternatives);
            }
        }
        for part in list(&members, "allOf") {
            let part = self.read_schema(&part, depth + 1);
            shape.merge_constraint(part);
        }
        if let Some(target) = members.text("$ref").and_then(|place| self.resolve_reference(&place)) {
            let target = self.read_schema(&target, depth + 1);
            shape.merge_constraint(target);
        }
        shape
    }

    fn properties(&mut self, members: &JsonObject, depth: usize) -> Vec<Property> {
        let required: Vec<_> =
            list(members, "required").iter().filter_map(|name| Some(name.as_text()?.into_owned())).collect();
        let properties = members.get("properties").and_then(|raw| raw.members().ok()).unwrap_or_default();
        let read = properties.iter().map(|(name, schema)| Property {
            name: name.to_string(),
            shape: self.read_schema(schema, depth + 1),
            required: required.iter().any(|required| *required == **name),
        });
        read.collect()
    }

    /// Reads alternatives as one shape that allows them all; values to choose from count only if all have some.
    fn alternatives(&mut self, members: &JsonObject, keyword: &str, depth: usize) -> Option<ValueShape> {
        let mut shapes =
            list(members, keyword).into_iter().map(|schema| self.read_schema(&schema, depth + 1));
        let mut all = shapes.next()?;
        let mut anything = all.types.is_empty();
        let mut chosen = !all.choices.is_empty();
        for shape in shapes {
            let only_null = shape.types == [JsonType::Null];
            anything |= shape.types.is_empty();
            chosen &= !shape.choices.is_empty() || only_null;
            all.merge_alternative(shape);
        }
        if anything {
            all.types.clear();
        }
        if !chosen {
            all.choices.clear();
        }
        (all.title, all.description, all.default) = (None, None, None);
        Some(all)
    }

    /// Finds what a reference within the schema points to; others are never followed.
    fn resolve_reference(&self, place: &str) -> Option<RawJson> {
        let path = place.strip_prefix('#')?;
        let mut found = self.root.clone();
        for step in path.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            found = found.members().ok()?.take(&step)?;
        }
        Some(found)
    }
}

fn json_types(members: &JsonObject) -> Vec<JsonType> {
    let Some(kind) = members.get("type") else { return Vec::new() };
    let names = if kind.kind() == JsonKind::Array { list(members, "type") } else { vec![kind.clone()] };
    names.iter().filter_map(|name| JsonType::parse(&name.as_text()?)).collect()
}

fn enum_choices(members: &JsonObject) -> Vec<EnumChoice> {
    if let Some(value) = members.get("const") {
        return vec![EnumChoice { value: value.clone(), title: text(members, "title") }];
    }
    let titles = list(members, "enumNames");
    let values = list(members, "enum").into_iter().enumerate();
    values
        .map(|(at, value)| {
            let title = titles.get(at).and_then(RawJson::as_text).map(std::borrow::Cow::into_owned);
            EnumChoice { value, title }
        })
        .collect()
}

fn allows_additional(members: &JsonObject) -> bool {
    let invited = members.get("additionalProperties").is_some_and(|raw| raw.as_str() != "false");
    invited || members.get("patternProperties").is_some()
}

fn list(members: &JsonObject, key: &str) -> Vec<RawJson> {
    members.get(key).and_then(|raw| raw.elements().ok()).unwrap_or_default()
}

fn text(members: &JsonObject, key: &str) -> Option<String> {
    Some(members.get(key)?.as_text()?.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shape(schema: Value) -> ValueShape {
        ValueShape::from_schema(&schema.into())
    }

    #[test]
    fn properties_keep_the_order_of_the_schema() {
        let schema = r#"{"type":"object","properties":{"b":{},"a":{"type":"integer"}},"required":["a"]}"#;
        let shape = ValueShape::from_schema(&RawJson::parse(schema).unwrap());
        let names: Vec<_> = shape.properties.iter().map(|p| (p.name.as_str(), p.required)).collect();
        assert_eq!(names, [("b", false), ("a", true)]);
        assert!(shape.property("a").unwrap().shape.is_exactly(JsonType::Integer));
    }

    #[test]
    fn alternatives_allow_what_any_of_them_allows() {
        let nullable = shape(json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }));
        assert_eq!(nullable.types, [JsonType::Integer, JsonType::Null]);
        let loose = shape(json!({ "anyOf": [{ "type": "integer" }, {}] }));
        assert!(loose.types.is_empty() && loose.allows(JsonType::Object));
        let mixed = shape(json!({ "oneOf": [{ "const": "auto" }, { "type": "integer" }] }));
        assert!(mixed.choices.is_empty(), "an integer is none of the choices: {mixed:?}");
    }

    #[test]
    fn choices_have_titles_however_they_are_written() {
        for schema in [
            json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["An a", "A b"] }),
            json!({ "type": "string", "oneOf": [{ "const": "a", "title": "An a" }, { "const": "b", "title": "A b" }] }),
            json!({ "anyOf": [{ "const": "a", "title": "An a" }, { "const": "b", "title": "A b" }, { "type": "null" }] }),
        ] {
            let shape = shape(schema.clone());
            let titles: Vec<_> =
                shape.choices.iter().map(|choice| choice.title.as_deref().unwrap()).collect();
            assert_eq!(titles, ["An a", "A b"], "{schema}");
        }
    }

    #[test]
    fn references_within_the_schema_are_followed_and_others_are_not() {
        let inner = shape(json!({
            "$defs": { "Place": { "type": "object", "properties": { "city": { "type": "string" } } } },
            "properties": { "at": { "$ref": "#/$defs/Place", "description": "where" } },
        }));
        let at = &inner.property("at").unwrap().shape;
        assert!(at.is_exactly(JsonType::Object) && at.property("city").is_some());
        assert_eq!(at.description.as_deref(), Some("where"));
        assert_eq!(shape(json!({ "$ref": "https://example.com/x" })), ValueShape::default());
    }

    #[test]
    fn schemas_that_never_end_are_read_up_to_a_bound() {
        let itself = shape(json!({ "$ref": "#" }));
        assert_eq!(itself.types, []);
        let tree = json!({ "type": "object", "properties": {
            "left": { "$ref": "#" }, "right": { "$ref": "#" }, "more": { "items": { "$ref": "#" } },
        } });
        assert!(shape(tree).is_exactly(JsonType::Object));
        let wide: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("p{n}"), json!({ "$ref": "#" }))).collect();
        assert!(shape(json!({ "type": "object", "properties": wide })).is_exactly(JsonType::Object));
    }

    #[test]
    fn malformed_schemas_allow_any_value() {
        for schema in [json!(true), json!(7), json!(null), json!({ "type": 7, "properties": [] })] {
            assert_eq!(shape(schema.clone()), ValueShape::default(), "{schema}");
        }
    }
}
