//! Collection and validation of the marks in a schema.
//!
//! See [Schema Extension](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#schema-extension).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{MirrorKind, MirroredParam};

const ANNOTATION: &str = "x-mcp-header";

/// How many schemas may nest inside each other before the search for marks gives up.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// Keywords with a schema, or a list of schemas, as value that no fixed property path leads to.
const SCHEMA_KEYWORDS: [&str; 17] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "extends",
];

/// Keywords with a map from names to schemas as value that no fixed property path leads to.
const SCHEMA_MAP_KEYWORDS: [&str; 5] =
    ["patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];

/// The rule that a schema's marks break.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The mark is not a non-empty HTTP token.
    #[error("`x-mcp-header` at `{place}` is not a header name")]
    BadName {
        /// The path of the mark.
        place: String,
    },
    /// Two marks give the same name, ignoring case.
    #[error("`x-mcp-header` at `{place}` repeats the name `{name}`")]
    Duplicate {
        /// The path of the second mark.
        place: String,
        /// The name as the second mark spells it.
        name: String,
    },
    /// The marked property is not a string, an integer or a boolean.
    #[error("`x-mcp-header` at `{place}` is on a property whose type is not string, integer or boolean")]
    BadType {
        /// The path of the mark.
        place: String,
    },
    /// The mark is in a schema that `properties` alone do not lead to.
    #[error("`x-mcp-header` at `{place}` is not reached through `properties` alone")]
    Unreachable {
        /// The path of the mark.
        place: String,
    },
    /// Schemas nest more than [`MAX_SCHEMA_DEPTH`] deep.
    #[error("input schema nests more than {MAX_SCHEMA_DEPTH} schemas deep")]
    TooDeep,
}

/// Lists the marked properties of a schema in document order.
pub(super) fn collect(schema: &Value) -> Result<Vec<MirroredParam>, MirrorError> {
    let mut collector = MirrorCollector::default();
    collector.visit(schema, SchemaReachability::Properties, 0)?;
    Ok(collector.params)
}

/// Whether a schema can be reached through `properties` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaReachability {
    Properties,
    Elsewhere,
}

#[derive(Default)]
struct MirrorCollector<'s> {
    params: Vec<MirroredParam>,
    lowercase_names: HashSet<String>,
    path: Vec<&'s str>,
}

impl<'s> MirrorCollector<'s> {
    fn visit(
        &mut self,
        schema: &'s Value,
        reach: SchemaReachability,
        depth: usize,
    ) -> Result<(), MirrorError> {
        // `true` and `false` are schemas too; they and malformed ones hold no marks.
        let Some(schema) = schema.as_object() else { return Ok(()) };
        if depth >= MAX_SCHEMA_DEPTH {
            return Err(MirrorError::TooDeep);
        }
        if let Some(annotation) = schema.get(ANNOTATION) {
            self.accept(annotation, schema, reach)?;
        }
        for (keyword, value) in schema {
            let keyword = keyword.as_str();
            if keyword == "properties" {
                self.visit_map(value, reach, depth)?;
            } else if SCHEMA_MAP_KEYWORDS.contains(&keyword) {
                self.path.push(keyword);
                self.visit_map(value, SchemaReachability::Elsewhere, depth)?;
                self.path.pop();
            } else if SCHEMA_KEYWORDS.contains(&keyword) {
                self.path.push(keyword);
                for schema in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
                    self.visit(schema, SchemaReachability::Elsewhere, depth + 1)?;
                }
                self.path.pop();
            }
        }
        Ok(())
    }

    fn visit_map(
        &mut self,
        schemas: &'s Value,
        reach: SchemaReachability,
        depth: usize,
    ) -> Result<(), MirrorError> {
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            self.path.push(name);
            self.visit(schema, reach, depth + 1)?;
            self.path.pop();
        }
        Ok(())
    }

    fn accept(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        reach: SchemaReachability,
    ) -> Result<(), MirrorError> {
        if reach == SchemaReachability::Elsewhere {
            return Err(MirrorError::Unreachable { place: self.path_text() });
        }
        let Some(name) = annotation.as_str().filter(|name| is_token(name)) else {
            return Err(MirrorError::BadName { place: self.path_text() });
        };
        let Some(kind) = kind_of(schema).filter(|_| !self.path.is_empty()) else {
            return Err(MirrorError::BadType { place: self.path_text() });
        };
        if !self.lowercase_names.insert(name.to_ascii_lowercase()) {
            return Err(MirrorError::Duplicate { place: self.path_text(), name: name.to_owned() });
        }
        self.params.push(MirroredParam::new(&self.path, name, kind));
        Ok(())
    }

    fn path_text(&self) -> String {
        format!("/{}", self.path.join("/"))
    }
}

fn kind_of(schema: &Map<String, Value>) -> Option<MirrorKind> {
    match schema.get("type")?.as_str()? {
        "string" => Some(MirrorKind::String),
        "integer" => Some(MirrorKind::Integer),
        "boolean" => Some(MirrorKind::Boolean),
        _ => None,
    }
}

/// Reports whether a text is a token (RFC 9110 §5.6.2), the only form that a header's name may have.
fn is_token(text: &str) -> bool {
    let token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(token_byte)
}
