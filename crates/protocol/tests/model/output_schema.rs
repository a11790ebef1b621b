//! Output schemas for the revisions in which structured content is always an object.

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::Tool;
use trunkline_protocol::{RawJson, Revision};

use super::{raw, written};

fn narrowed(schema: &str, revision: Revision) -> RawJson {
    let tool = Tool { output_schema: Some(raw(schema)), ..Tool::default() };
    let json = written(|writer| tool.write(Dialect::of(revision), writer));
    raw(&json).members().unwrap().take("outputSchema").unwrap()
}

#[test]
fn output_schemas_are_narrowed_by_the_values_they_allow() {
    for (schema, expected) in [
        // Objects stay as they are.
        (r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}"##, None),
        // What cannot be an object is wrapped.
        (
            r#"{"type":"string"}"#,
            Some(r#"{"type":"object","properties":{"result":{"type":"string"}},"required":["result"]}"#),
        ),
        (
            r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"type":"object","properties":{"next":{"$ref":"#"},"$ref":{"$ref":"#here"}}}}}"##,
            Some(
                r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/properties/result/$defs/A"},"$defs":{"A":{"type":"object","properties":{"next":{"$ref":"#/properties/result"},"$ref":{"$ref":"#here"}}}}}},"required":["result"]}"##,
            ),
        ),
        // Subtrees with an address of their own keep their references, and data is not a schema.
        (
            r##"{"type":["array","null"],"items":{"$id":"https://x/y","items":{"$ref":"#/a"}},"default":[{"$ref":"#"}]}"##,
            Some(
                r##"{"type":"object","properties":{"result":{"type":["array","null"],"items":{"$id":"https://x/y","items":{"$ref":"#/a"}},"default":[{"$ref":"#"}]}},"required":["result"]}"##,
            ),
        ),
        // A property that is called like a keyword is still a schema.
        (
            r##"{"type":"array","items":{"properties":{"default":{"$ref":"#"}}}}"##,
            Some(
                r##"{"type":"object","properties":{"result":{"type":"array","items":{"properties":{"default":{"$ref":"#/properties/result"}}}}},"required":["result"]}"##,
            ),
        ),
        // Alternatives that are all objects only have to declare that type.
        (
            r##"{"oneOf":[{"type":"object"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"allOf":[{"minProperties":1},{"type":"object"}]}}}"##,
            Some(
                r##"{"type":"object","oneOf":[{"type":"object"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"allOf":[{"minProperties":1},{"type":"object"}]}}}"##,
            ),
        ),
        (r#"{"type":["object"]}"#, Some(r#"{"type":"object"}"#)),
        // Objects stay as they are beside other values that are wrapped.
        (
            r##"{"anyOf":[{"type":"object","properties":{"a":{"$ref":"#"}}},{"type":"null"}]}"##,
            Some(
                r##"{"type":"object","anyOf":[{"anyOf":[{"type":"object","properties":{"a":{"$ref":"#/anyOf/0"}}},{"type":"null"}]},{"type":"object","properties":{"result":{"$ref":"#/anyOf/0"}},"required":["result"]}]}"##,
            ),
        ),
        (
            "true",
            Some(
                r##"{"type":"object","anyOf":[true,{"type":"object","properties":{"result":{"$ref":"#/anyOf/0"}},"required":["result"]}]}"##,
            ),
        ),
    ] {
        for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
            assert_eq!(narrowed(schema, revision).as_str(), expected.unwrap_or(schema), "{revision}");
        }
        assert_eq!(narrowed(schema, Revision::V2026_07_28).as_str(), schema);
    }
}

#[test]
fn circular_schema_references_terminate() {
    let circle = r##"{"oneOf":[{"$ref":"#/oneOf/0"},{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}]}}}"##;
    assert!(narrowed(circle, Revision::V2025_06_18).as_str().contains("#/anyOf/0/$defs/A"));
    let deep = format!("{}{{\"type\":\"array\"}}{}", "{\"not\":".repeat(100), "}".repeat(100));
    assert!(narrowed(&deep, Revision::V2025_06_18).as_str().contains(&deep));
}
