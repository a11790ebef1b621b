//! Tools, prompts, resources and implementations: one test per thing that some revision lacks.

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::*;
use trunkline_protocol::{JsonObject, Revision};

use super::{check, raw, written};

fn icon() -> Icon {
    Icon { sizes: vec!["any".into()], ..Icon::new("https://x/i.svg") }
}

fn members(json: &str) -> JsonObject {
    raw(json).members().unwrap()
}

fn tool() -> Tool {
    Tool::new("t", raw(r#"{"type":"object"}"#))
}

#[test]
fn implementation_loses_members_of_later_revisions() {
    let implementation = Implementation {
        title: Some("T".into()),
        description: Some("D".into()),
        website_url: Some("https://x".into()),
        icons: vec![icon()],
        ..Implementation::new("n", "1")
    };
    check(
        |dialect, writer| implementation.write(dialect, writer),
        [
            r#"{"name":"n","version":"1"}"#,
            "",
            r#"{"name":"n","version":"1","title":"T"}"#,
            r#"{"name":"n","version":"1","title":"T","description":"D","websiteUrl":"https://x","icons":[{"src":"https://x/i.svg","sizes":["any"]}]}"#,
            "",
        ],
    );
}

#[test]
fn tool_title_moves_into_annotations_in_revisions_without_title() {
    let titled = Tool { title: Some("T".into()), ..tool() };
    check(
        |dialect, writer| titled.write(dialect, writer),
        [
            r#"{"name":"t","inputSchema":{"type":"object"}}"#,
            r#"{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"T"}}"#,
            r#"{"name":"t","title":"T","inputSchema":{"type":"object"}}"#,
            "",
            "",
        ],
    );
}

#[test]
fn annotation_title_is_not_overwritten() {
    let hints = ToolAnnotations { title: Some("own".into()), ..ToolAnnotations::default() };
    let titled = Tool { title: Some("T".into()), annotations: Some(hints), ..tool() };
    assert_eq!(
        written(|writer| titled.write(Dialect::of(Revision::V2025_03_26), writer)),
        r#"{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"own"}}"#
    );
    assert_eq!(titled.display_name(), "T");
    assert_eq!(Tool { title: None, ..titled }.display_name(), "own");
    assert_eq!(tool().display_name(), "t");
}

#[test]
fn tool_annotations_begin_with_the_second_revision() {
    let hints = ToolAnnotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
        ..ToolAnnotations::default()
    };
    let hinted = Tool { annotations: Some(hints), ..tool() };
    check(
        |dialect, writer| hinted.write(dialect, writer),
        [
            r#"{"name":"t","inputSchema":{"type":"object"}}"#,
            r#"{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}"#,
            "",
            "",
            "",
        ],
    );
}

#[test]
fn icons_begin_with_the_fourth_revision() {
    let pictured = Tool { icons: vec![icon()], ..tool() };
    check(
        |dialect, writer| pictured.write(dialect, writer),
        [
            r#"{"name":"t","inputSchema":{"type":"object"}}"#,
            "",
            "",
            r#"{"name":"t","inputSchema":{"type":"object"},"icons":[{"src":"https://x/i.svg","sizes":["any"]}]}"#,
            "",
        ],
    );
}

#[test]
fn entity_meta_begins_with_the_third_revision_but_ui_passes_everywhere() {
    let tool = Tool { meta: Some(members(r#"{"com.x/a":1,"ui":{"resourceUri":"ui://x"}}"#)), ..tool() };
    check(
        |dialect, writer| tool.write(dialect, writer),
        [
            r#"{"name":"t","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://x"}}}"#,
            "",
            r#"{"name":"t","inputSchema":{"type":"object"},"_meta":{"com.x/a":1,"ui":{"resourceUri":"ui://x"}}}"#,
            "",
            "",
        ],
    );
    let prompt = Prompt { meta: Some(members(r#"{"com.x/a":1}"#)), ..Prompt::new("p") };
    check(
        |dialect, writer| prompt.write(dialect, writer),
        [r#"{"name":"p"}"#, "", r#"{"name":"p","_meta":{"com.x/a":1}}"#, "", ""],
    );
}

#[test]
fn output_schema_exists_from_the_third_revision_on() {
    let tool = Tool { output_schema: Some(raw(r#"{ "type":"object" }"#)), ..tool() };
    check(
        |dialect, writer| tool.write(dialect, writer),
        [
            r#"{"name":"t","inputSchema":{"type":"object"}}"#,
            "",
            r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{ "type":"object" }}"#,
            "",
            "",
        ],
    );
}

#[test]
fn resource_keeps_its_size_and_loses_members_of_later_revisions() {
    let resource = Resource {
        title: Some("T".into()),
        size: Some(u64::MAX),
        mime_type: Some("text/plain".into()),
        annotations: Some(Annotations {
            audience: vec![Role::User, Role::Assistant],
            priority: Some(0.5),
            last_modified: Some("2026-01-01T00:00:00Z".into()),
            rest: JsonObject::new(),
        }),
        ..Resource::new("file:///a", "a")
    };
    check(
        |dialect, writer| resource.write(dialect, writer),
        [
            r#"{"uri":"file:///a","name":"a","mimeType":"text/plain","size":18446744073709551615,"annotations":{"audience":["user","assistant"],"priority":0.5}}"#,
            "",
            r#"{"uri":"file:///a","name":"a","title":"T","mimeType":"text/plain","size":18446744073709551615,"annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-01-01T00:00:00Z"}}"#,
            "",
            "",
        ],
    );
}

#[test]
fn templates_and_prompt_arguments_have_titles_from_the_third_revision_on() {
    let template = ResourceTemplate { title: Some("T".into()), ..ResourceTemplate::new("file:///{p}", "n") };
    check(
        |dialect, writer| template.write(dialect, writer),
        [
            r#"{"uriTemplate":"file:///{p}","name":"n"}"#,
            "",
            r#"{"uriTemplate":"file:///{p}","name":"n","title":"T"}"#,
            "",
            "",
        ],
    );
    let argument = PromptArgument { title: Some("T".into()), ..PromptArgument::required("a") };
    let prompt = Prompt { arguments: vec![argument, PromptArgument::new("b")], ..Prompt::new("p") };
    check(
        |dialect, writer| prompt.write(dialect, writer),
        [
            r#"{"name":"p","arguments":[{"name":"a","required":true},{"name":"b"}]}"#,
            "",
            r#"{"name":"p","arguments":[{"name":"a","title":"T","required":true},{"name":"b"}]}"#,
            "",
            "",
        ],
    );
}

#[test]
fn unknown_members_are_carried_into_every_dialect_and_never_written_twice() {
    let rest = members(r#"{"execution":{ "taskSupport" : "optional" },"title":"again","x":1.50}"#);
    let tool = Tool { title: Some("T".into()), rest, ..tool() };
    check(
        |dialect, writer| tool.write(dialect, writer),
        [
            r#"{"name":"t","inputSchema":{"type":"object"},"execution":{ "taskSupport" : "optional" },"x":1.50}"#,
            r#"{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"T"},"execution":{ "taskSupport" : "optional" },"x":1.50}"#,
            r#"{"name":"t","title":"T","inputSchema":{"type":"object"},"execution":{ "taskSupport" : "optional" },"x":1.50}"#,
            "",
            "",
        ],
    );
}
