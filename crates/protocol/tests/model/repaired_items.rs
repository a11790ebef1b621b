//! Items as other servers send them: repaired, or left out, and then valid for clients of every revision.

use proptest::prelude::*;
use serde_json::{Value, json};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{
    Implementation, MalformedModel, Prompt, RepairLog, Resource, ResourceTemplate, Tool,
};
use trunkline_protocol::{JsonWriter, RawJson};

use super::mutated;
use super::schemas::assert_valid;
use super::{raw, written};

/// What becomes of an item.
type Outcome = Result<(Box<dyn Fn(&Dialect, &mut JsonWriter)>, RepairLog), MalformedModel>;

/// Reads an item of a kind.
fn read(kind: &str, item: &RawJson) -> (Outcome, &'static str) {
    macro_rules! read {
        ($type:ident) => {
            <$type>::read_repaired(item).map(|repaired| {
                let item = repaired.item;
                let write: Box<dyn Fn(&Dialect, &mut JsonWriter)> =
                    Box::new(move |dialect, writer| item.write(dialect, writer));
                (write, repaired.repairs)
            })
        };
    }
    match kind {
        "tool" => (read!(Tool), "Tool"),
        "prompt" => (read!(Prompt), "Prompt"),
        "resource" => (read!(Resource), "Resource"),
        "server" => (read!(Implementation), "Implementation"),
        _ => (read!(ResourceTemplate), "ResourceTemplate"),
    }
}

/// Asserts that a relayed item is valid in every revision; returns how it was repaired.
#[track_caller]
fn check(kind: &str, item: &RawJson) -> String {
    let (outcome, definition) = read(kind, item);
    let (write, repairs) = match outcome {
        Ok(read) => read,
        Err(problem) => return format!("left out: {problem}"),
    };
    for dialect in Dialect::ALL {
        let json = written(|writer| write(dialect, writer));
        assert_valid(dialect.revision(), definition, &json);
        if dialect == Dialect::NEWEST {
            let (again, _) = read(kind, &raw(&json));
            assert!(again.is_ok_and(|(_, repairs)| repairs.is_empty()), "it needs no second repair: {json}");
        }
    }
    if repairs.is_empty() { String::new() } else { format!("repaired: {repairs}") }
}

#[track_caller]
fn check_table(kind: &str, rows: &[(Value, &str)]) {
    for (item, expected) in rows {
        assert_eq!(check(kind, &item.into()), *expected, "{item}");
    }
}

fn tool(key: &str, value: Value) -> Value {
    let mut tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    tool[key] = value;
    tool
}

fn with_schema(schema: Value) -> Value {
    tool("inputSchema", schema)
}

#[test]
fn tool_with_malformed_schema_is_repaired_or_omitted() {
    let object = "`inputSchema` must be an object";
    let of_type = "`inputSchema.type` must be `object`";
    let properties = "`inputSchema.properties` must be an object";
    let required = "`inputSchema.required` must be an array of strings";
    let repaired = |problem: &str| format!("repaired: {problem}");
    let left_out = |problem: &str| format!("left out: {problem}");
    let rows = [
        (json!({ "name": "t" }), repaired("`inputSchema` is missing")),
        (with_schema(json!(null)), repaired("`inputSchema` is missing")),
        (with_schema(json!({})), repaired(of_type)),
        (with_schema(json!([])), repaired(object)),
        (with_schema(json!(true)), repaired(object)),
        (with_schema(json!(false)), left_out("`inputSchema` must be an object: it is not an object")),
        (with_schema(json!([1])), left_out("`inputSchema` must be an object: it is not an object")),
        (with_schema(json!("object")), left_out("`inputSchema` must be the schema of an object")),
        (with_schema(json!(7)), left_out("`inputSchema` must be the schema of an object")),
        (with_schema(json!({ "properties": { "a": { "type": "string" } } })), repaired(of_type)),
        (with_schema(json!({ "type": null })), repaired(of_type)),
        (with_schema(json!({ "type": "OBJECT" })), repaired(of_type)),
        (with_schema(json!({ "type": ["object", "null"] })), repaired(of_type)),
        (with_schema(json!({ "type": "string" })), left_out(of_type)),
        (with_schema(json!({ "type": ["string"] })), left_out(of_type)),
        (with_schema(json!({ "type": {} })), left_out(of_type)),
        (with_schema(json!({ "type": "object", "properties": [] })), repaired(properties)),
        (with_schema(json!({ "type": "object", "properties": null })), String::new()),
        (with_schema(json!({ "type": "object", "properties": ["a"] })), left_out(properties)),
        (with_schema(json!({ "type": "object", "properties": "a" })), left_out(properties)),
        (with_schema(json!({ "type": "object", "properties": { "a": true, "b": false } })), String::new()),
        (
            with_schema(json!({ "type": "object", "properties": { "a": null, "b": [] } })),
            repaired(
                "`inputSchema.properties.a` must be an object, `inputSchema.properties.b` must be an object",
            ),
        ),
        (
            with_schema(json!({ "type": "object", "properties": { "a": "string" } })),
            left_out("`inputSchema.properties.a` must be an object"),
        ),
        (with_schema(json!({ "type": "object", "required": "a" })), repaired(required)),
        (with_schema(json!({ "type": "object", "required": true })), repaired(required)),
        (with_schema(json!({ "type": "object", "required": { "a": true } })), repaired(required)),
        (with_schema(json!({ "type": "object", "required": ["a", 7, null] })), repaired(required)),
        (with_schema(json!({ "type": "object", "required": null })), String::new()),
        (
            with_schema(json!({ "type": "object", "$schema": 7 })),
            repaired("`inputSchema.$schema` must be a string"),
        ),
    ];
    for (item, expected) in rows {
        assert_eq!(check("tool", &(&item).into()), expected, "{item}");
    }
}

#[test]
fn repaired_schemas_have_the_obvious_meaning() {
    for (schema, expected) in [
        (json!({}), r#"{"type":"object"}"#),
        (json!([]), r#"{"type":"object"}"#),
        (json!({ "properties": { "a": {} } }), r#"{"properties":{"a":{}},"type":"object"}"#),
        (json!({ "type": "object", "properties": [] }), r#"{"properties":{},"type":"object"}"#),
        (json!({ "type": "object", "required": "a" }), r#"{"required":["a"],"type":"object"}"#),
        (
            json!({ "type": "object", "properties": { "a": true, "b": false } }),
            r#"{"properties":{"a":{},"b":{"not":{}}},"type":"object"}"#,
        ),
    ] {
        let tool = Tool::read_repaired(&(&with_schema(schema)).into()).unwrap().item;
        assert_eq!(tool.input_schema.as_str(), expected);
    }
}

#[test]
fn malformed_tool_member_is_dropped_and_unnamed_tool_is_omitted() {
    let schema = "repaired: `outputSchema` is not a schema that every client can use";
    check_table(
        "tool",
        &[
            (json!(7), "left out: the value must be an object"),
            (json!({ "inputSchema": { "type": "object" } }), "left out: `name` is missing"),
            (tool("name", json!(7)), "left out: `name` must be a string"),
            (tool("title", json!(7)), "repaired: `title` must be a string"),
            (tool("title", json!(null)), ""),
            (tool("description", json!(["a"])), "repaired: `description` must be a string"),
            (tool("outputSchema", json!([])), "repaired: `outputSchema` must be an object"),
            (tool("outputSchema", json!({ "type": "strin" })), schema),
            (tool("outputSchema", json!({ "pattern": "(" })), schema),
            (tool("outputSchema", json!({ "$ref": "#/nowhere" })), schema),
            (tool("outputSchema", json!({ "type": "object", "properties": { "a": true } })), ""),
            (tool("outputSchema", json!({ "type": "array", "items": { "$ref": "#" } })), ""),
            (
                tool("outputSchema", json!({ "properties": 7 })),
                "repaired: `outputSchema.properties` must be an object",
            ),
            (tool("annotations", json!("safe")), "repaired: `annotations` must be an object"),
            (
                tool("annotations", json!({ "readOnlyHint": "yes", "title": 7, "own": 1 })),
                "repaired: `annotations.title` must be a string, `annotations.readOnlyHint` must be true or false",
            ),
            (tool("icons", json!({})), "repaired: `icons` must be an array"),
            (
                tool(
                    "icons",
                    json!([7, { "src": "https://x.example/i.png", "theme": "blue", "sizes": "any" }, {}]),
                ),
                "repaired: `icons[0]` must be an object, `icons[1].sizes` must be an array, \
                 `icons[1].theme` must be `light` or `dark`, `icons[2].src` is missing",
            ),
            (tool("icons", json!([{ "src": "picture" }])), "repaired: `icons[0].src` must be a URI"),
            (tool("_meta", json!([])), "repaired: `_meta` must be an object: it is not an object"),
            (tool("execution", json!("now")), "repaired: `execution` must be an object"),
            (
                tool("execution", json!({ "taskSupport": 7 })),
                "repaired: `execution.taskSupport` must be `forbidden`, `optional` or `required`",
            ),
        ],
    );
}

#[test]
fn prompt_with_malformed_arguments_is_omitted() {
    let prompt = |arguments: Value| json!({ "name": "p", "arguments": arguments });
    check_table(
        "prompt",
        &[
            (json!({ "title": "p" }), "left out: `name` is missing"),
            (json!({ "name": "p", "description": {} }), "repaired: `description` must be a string"),
            (prompt(json!(null)), ""),
            (prompt(json!({})), "repaired: `arguments` must be an array"),
            (prompt(json!({ "a": {} })), "left out: `arguments` must be an array"),
            (prompt(json!(["a"])), "left out: `arguments[0]` must be an object"),
            (prompt(json!([{ "name": "a" }, {}])), "left out: `arguments[1].name` is missing"),
            (
                prompt(json!([{ "name": "a", "required": "yes", "title": 7 }])),
                "repaired: `arguments[0].title` must be a string, `arguments[0].required` must be true or false",
            ),
        ],
    );
}

#[test]
fn malformed_resource_member_is_dropped_and_resource_without_uri_is_omitted() {
    let resource = |key: &str, value: Value| {
        let mut resource = json!({ "uri": "x:1", "name": "r" });
        resource[key] = value;
        resource
    };
    let annotated = |annotations: Value| resource("annotations", annotations);
    let date = "repaired: `annotations.lastModified` must be a date with a time and its zone";
    let priority = "repaired: `annotations.priority` must be a number from 0 to 1";
    check_table(
        "resource",
        &[
            (json!({ "name": "r" }), "left out: `uri` is missing"),
            (resource("uri", json!(7)), "left out: `uri` must be a URI"),
            (resource("uri", json!("")), "left out: `uri` must be a URI"),
            (resource("uri", json!("notes.md")), "left out: `uri` must be a URI"),
            (resource("uri", json!("http://a b/")), "left out: `uri` must be a URI"),
            (json!({ "uri": "x:1" }), "repaired: `name` is missing"),
            (resource("name", json!(7)), "repaired: `name` must be a string, `name` is missing"),
            (resource("mimeType", json!([])), "repaired: `mimeType` must be a string"),
            (resource("size", json!(-1)), "repaired: `size` must be an integer that is not negative"),
            (resource("size", json!("12")), "repaired: `size` must be an integer that is not negative"),
            (resource("size", json!(12.5)), "repaired: `size` must be an integer that is not negative"),
            (annotated(json!({ "lastModified": "yesterday" })), date),
            (annotated(json!({ "lastModified": 7 })), date),
            (annotated(json!({ "priority": 2 })), priority),
            (annotated(json!({ "priority": "high" })), priority),
            (annotated(json!({ "audience": "user" })), "repaired: `annotations.audience` must be an array"),
            (
                annotated(json!({ "audience": ["user", "robot", 7] })),
                "repaired: `annotations.audience[1]` must be `user` or `assistant`, \
                 `annotations.audience[2]` must be `user` or `assistant`",
            ),
            (annotated(json!([])), "repaired: `annotations` must be an object"),
            (annotated(json!({ "audience": [], "priority": 1, "lastModified": "2025-01-12T15:00:58Z" })), ""),
        ],
    );
    let template = |key: &str, value: Value| {
        let mut template = json!({ "uriTemplate": "x:{id}", "name": "t" });
        template[key] = value;
        template
    };
    check_table(
        "template",
        &[
            (json!({ "name": "t" }), "left out: `uriTemplate` is missing"),
            (template("uriTemplate", json!({})), "left out: `uriTemplate` must be a string"),
            (json!({ "uriTemplate": "x:{id}" }), "repaired: `name` is missing"),
            (template("annotations", json!({ "lastModified": "2025" })), date),
            (template("icons", json!("i.png")), "repaired: `icons` must be an array"),
            // What it means its server may know.
            (template("uriTemplate", json!("x:{id")), ""),
        ],
    );
}

#[test]
fn malformed_server_info_is_repaired() {
    let server = |key: &str, value: Value| {
        let mut server = json!({ "name": "s", "version": "1" });
        server[key] = value;
        server
    };
    check_table(
        "server",
        &[
            (json!({ "name": "s" }), "left out: `version` is missing"),
            (server("title", json!(7)), "repaired: `title` must be a string"),
            (server("websiteUrl", json!("x")), "repaired: `websiteUrl` must be a URI"),
            (
                server("icons", json!([{ "src": "data:,", "theme": 7 }])),
                "repaired: `icons[0].theme` must be `light` or `dark`",
            ),
        ],
    );
}

#[test]
fn item_that_a_parser_would_reject_is_repaired_or_omitted() {
    let deep = |levels: usize| {
        let schema = format!("{}{{}}{}", r#"{"type":"object","a":"#.repeat(levels), "}".repeat(levels));
        format!(r#"{{"name":"t","inputSchema":{schema}}}"#)
    };
    for (item, expected) in [
        (
            r#"{"name":"t","name":"u","inputSchema":{"type":"object"}}"#.to_owned(),
            "left out: the value must be an object: duplicate member `name`",
        ),
        (
            r#"{"name":"t","inputSchema":{"type":"object","type":"string"}}"#.to_owned(),
            "left out: `inputSchema` must be an object: duplicate member `type`",
        ),
        (
            r#"{"name":"t","description":"cut \ud83d","inputSchema":{"type":"object"}}"#.to_owned(),
            "repaired: the value has half of a surrogate pair",
        ),
        (r#"{"name":"t","description":"\ud83d\ude00","inputSchema":{"type":"object"}}"#.to_owned(), ""),
        (
            r#"{"name":"t","inputSchema":{"type":"object","maximum":1e999}}"#.to_owned(),
            "left out: the value has a number that is too large",
        ),
        (deep(58), ""),
        (deep(59), "left out: the value nests deeper than 60 levels"),
        (deep(100_000), "left out: the value nests deeper than 60 levels"),
    ] {
        assert_eq!(check("tool", &raw(&item)), expected, "{item:.100}");
    }
}

/// Items with every member that any revision knows.
fn whole() -> Vec<(&'static str, Value)> {
    let icons = json!([{ "src": "https://x.example/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark" }]);
    let annotations =
        json!({ "audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z" });
    let schema = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": { "a": { "type": "string", "description": "A." }, "b": { "$ref": "#/$defs/b" } },
        "required": ["a"], "$defs": { "b": { "type": "number" } }, "additionalProperties": false });
    vec![
        (
            "tool",
            json!({ "name": "t", "title": "T", "description": "Does it.", "inputSchema": schema, "outputSchema": schema,
                "annotations": { "title": "T", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
                    "openWorldHint": false },
                "execution": { "taskSupport": "optional" }, "icons": icons, "_meta": { "x.example/y": 1 }, "own": [1] }),
        ),
        (
            "tool",
            json!({ "name": "t", "inputSchema": { "type": "object" },
                "outputSchema": { "anyOf": [{ "type": "array", "items": { "$ref": "#/anyOf/1" } }, { "type": "object" }] } }),
        ),
        (
            "prompt",
            json!({ "name": "p", "title": "P", "description": "For it.", "icons": icons, "_meta": { "ui": {} },
                "arguments": [{ "name": "a", "title": "A", "description": "It.", "required": true }, { "name": "b" }] }),
        ),
        (
            "resource",
            json!({ "uri": "file:///a", "name": "r", "title": "R", "description": "It.", "mimeType": "text/plain",
                "size": 12, "annotations": annotations, "icons": icons, "_meta": {} }),
        ),
        (
            "template",
            json!({ "uriTemplate": "file:///{a}", "name": "r", "title": "R", "description": "It.",
                "mimeType": "text/plain", "annotations": annotations, "icons": icons, "_meta": {} }),
        ),
    ]
}

#[test]
fn valid_items_need_no_repair() {
    for (kind, item) in whole() {
        assert_eq!(check(kind, &(&item).into()), "", "{item}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn mutated_items_are_repaired_or_omitted(
        which in 0..5_usize,
        mutations in prop::collection::vec(mutated::mutation(), 1..4),
    ) {
        let (kind, item) = whole().swap_remove(which);
        check(kind, &mutated::apply(&item, &mutations));
    }
}
