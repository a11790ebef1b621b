use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{Members, Raw};

/// How deep schemas are followed: whatever is typed at a terminal is flatter.
const DEEPEST: usize = 8;

/// How many schemas are read of one in all, so that references within references come to an end.
const MOST_SCHEMAS: usize = 4_096;

/// What a JSON Schema says of a value, as far as it matters to a person who types one or reads of it.
///
/// It is read once, keeps the order of properties, and is never wrong: what cannot be read may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    /// The types that the value may have, in the order of the schema; none means any.
    pub(crate) kinds: Vec<Kind>,
    /// The values to choose from, if there is such a list.
    pub(crate) choices: Vec<Choice>,
    /// What the elements of an array are.
    pub(crate) items: Option<Box<Shape>>,
    /// The properties of an object, in order.
    pub(crate) properties: Vec<Property>,
    /// Whether the schema invites properties that it does not list.
    pub(crate) others: bool,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<Raw>,
    pub(crate) format: Option<String>,
}

/// One property of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// One of the values to choose from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) value: Raw,
    pub(crate) title: Option<String>,
}

/// A type of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Null,
    Array,
    Object,
}

impl Kind {
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

impl Shape {
    /// Reads a schema.
    pub(crate) fn read(schema: &Raw) -> Self {
        Reader { root: schema.clone(), left: MOST_SCHEMAS }.shape(schema, 0)
    }

    /// Returns a property by its name.
    pub(crate) fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// Reports whether the value may have a type; a shape that says nothing allows all.
    pub(crate) fn allows(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Reports whether the value has exactly one type, null aside.
    pub(crate) fn is_only(&self, kind: Kind) -> bool {
        let mut kinds = self.kinds.iter().filter(|kind| **kind != Kind::Null);
        kinds.next() == Some(&kind) && kinds.next().is_none()
    }

    /// Takes up another schema that is an alternative to what was read so far.
    fn or(&mut self, other: Self) {
        for kind in other.kinds {
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
        }
        self.choices.extend(other.choices);
        self.take_up(other.items, other.properties);
    }

    /// Takes up another schema that holds as well.
    fn and(&mut self, other: Self) {
        if self.kinds.is_empty() {
            self.kinds = other.kinds;
        }
        if self.choices.is_empty() {
            self.choices = other.choices;
        }
        self.others |= other.others;
        self.take_up(other.items, other.properties);
        self.title = self.title.take().or(other.title);
        self.description = self.description.take().or(other.description);
        self.default = self.default.take().or(other.default);
        self.format = self.format.take().or(other.format);
    }

    fn take_up(&mut self, items: Option<Box<Self>>, properties: Vec<Property>) {
        self.items = self.items.take().or(items);
        for property in properties {
            if self.property(&property.name).is_none() {
                self.properties.push(property);
            }
        }
    }
}

struct Reader {
    root: Raw,
    left: usize,
}

impl Reader {
    fn shape(&mut self, schema: &Raw, depth: usize) -> Shape {
        let members = schema.members().unwrap_or_default();
        if depth >= DEEPEST || self.left == 0 {
            return Shape { kinds: kinds(&members), ..Shape::default() };
        }
        self.left -= 1;
        let mut shape = Shape {
            kinds: kinds(&members),
            choices: choices(&members),
            items: members.get("items").map(|items| Box::new(self.shape(items, depth + 1))),
            properties: self.properties(&members, depth),
            others: invites_others(&members),
            title: text(&members, "title"),
            description: text(&members, "description"),
            default: members.get("default").cloned(),
            format: text(&members, "format"),
        };
        for keyword in ["anyOf", "oneOf"] {
            if let Some(alternatives) = self.alternatives(&members, keyword, depth) {
                shape.and(alternatives);
            }
        }
        for part in list(&members, "allOf") {
            let part = self.shape(&part, depth + 1);
            shape.and(part);
        }
        if let Some(target) = members.text("$ref").and_then(|place| self.find(&place)) {
            let target = self.shape(&target, depth + 1);
            shape.and(target);
        }
        shape
    }

    fn properties(&mut self, members: &Members, depth: usize) -> Vec<Property> {
        let required: Vec<_> =
            list(members, "required").iter().filter_map(|name| Some(name.as_text()?.into_owned())).collect();
        let properties = members.get("properties").and_then(|raw| raw.members().ok()).unwrap_or_default();
        let read = properties.iter().map(|(name, schema)| Property {
            name: name.to_string(),
            shape: self.shape(schema, depth + 1),
            required: required.iter().any(|required| *required == **name),
        });
        read.collect()
    }

    /// Reads alternatives as one shape that allows them all; values to choose from count only if all have some.
    fn alternatives(&mut self, members: &Members, keyword: &str, depth: usize) -> Option<Shape> {
        let mut shapes = list(members, keyword).into_iter().map(|schema| self.shape(&schema, depth + 1));
        let mut all = shapes.next()?;
        let mut anything = all.kinds.is_empty();
        let mut chosen = !all.choices.is_empty();
        for shape in shapes {
            let only_null = shape.kinds == [Kind::Null];
            anything |= shape.kinds.is_empty();
            chosen &= !shape.choices.is_empty() || only_null;
            all.or(shape);
        }
        if anything {
            all.kinds.clear();
        }
        if !chosen {
            all.choices.clear();
        }
        (all.title, all.description, all.default) = (None, None, None);
        Some(all)
    }

    /// Finds what a reference within the schema points to; others are never followed.
    fn find(&self, place: &str) -> Option<Raw> {
        let path = place.strip_prefix('#')?;
        let mut found = self.root.clone();
        for step in path.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            found = found.members().ok()?.take(&step)?;
        }
        Some(found)
    }
}

fn kinds(members: &Members) -> Vec<Kind> {
    let Some(kind) = members.get("type") else { return Vec::new() };
    let names = if kind.kind() == JsonKind::Array { list(members, "type") } else { vec![kind.clone()] };
    names.iter().filter_map(|name| Kind::parse(&name.as_text()?)).collect()
}

fn choices(members: &Members) -> Vec<Choice> {
    if let Some(value) = members.get("const") {
        return vec![Choice { value: value.clone(), title: text(members, "title") }];
    }
    let titles = list(members, "enumNames");
    let values = list(members, "enum").into_iter().enumerate();
    values
        .map(|(at, value)| {
            let title = titles.get(at).and_then(Raw::as_text).map(std::borrow::Cow::into_owned);
            Choice { value, title }
        })
        .collect()
}

fn invites_others(members: &Members) -> bool {
    let invited = members.get("additionalProperties").is_some_and(|raw| raw.as_str() != "false");
    invited || members.get("patternProperties").is_some()
}

fn list(members: &Members, key: &str) -> Vec<Raw> {
    members.get(key).and_then(|raw| raw.elements().ok()).unwrap_or_default()
}

fn text(members: &Members, key: &str) -> Option<String> {
    Some(members.get(key)?.as_text()?.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shape(schema: Value) -> Shape {
        Shape::read(&schema.into())
    }

    #[test]
    fn properties_keep_the_order_of_the_schema() {
        let schema = r#"{"type":"object","properties":{"b":{},"a":{"type":"integer"}},"required":["a"]}"#;
        let shape = Shape::read(&Raw::parse(schema).unwrap());
        let names: Vec<_> = shape.properties.iter().map(|p| (p.name.as_str(), p.required)).collect();
        assert_eq!(names, [("b", false), ("a", true)]);
        assert!(shape.property("a").unwrap().shape.is_only(Kind::Integer));
    }

    #[test]
    fn alternatives_allow_what_any_of_them_allows() {
        let nullable = shape(json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }));
        assert_eq!(nullable.kinds, [Kind::Integer, Kind::Null]);
        let loose = shape(json!({ "anyOf": [{ "type": "integer" }, {}] }));
        assert!(loose.kinds.is_empty() && loose.allows(Kind::Object));
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
        assert!(at.is_only(Kind::Object) && at.property("city").is_some());
        assert_eq!(at.description.as_deref(), Some("where"));
        assert_eq!(shape(json!({ "$ref": "https://example.com/x" })), Shape::default());
    }

    #[test]
    fn schemas_that_never_end_are_read_up_to_a_bound() {
        let itself = shape(json!({ "$ref": "#" }));
        assert_eq!(itself.kinds, []);
        let tree = json!({ "type": "object", "properties": {
            "left": { "$ref": "#" }, "right": { "$ref": "#" }, "more": { "items": { "$ref": "#" } },
        } });
        assert!(shape(tree).is_only(Kind::Object));
        let wide: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("p{n}"), json!({ "$ref": "#" }))).collect();
        assert!(shape(json!({ "type": "object", "properties": wide })).is_only(Kind::Object));
    }

    #[test]
    fn what_is_no_schema_may_be_anything() {
        for schema in [json!(true), json!(7), json!(null), json!({ "type": 7, "properties": [] })] {
            assert_eq!(shape(schema.clone()), Shape::default(), "{schema}");
        }
    }
}
