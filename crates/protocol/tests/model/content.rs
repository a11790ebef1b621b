//! Content blocks and tool results.

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::*;

use super::{check, raw, written};

#[test]
fn text_image_and_embedded_resource_are_equal_in_all_dialects() {
    for (block, expected) in [
        (Content::text("a\"b"), r#"{"type":"text","text":"a\"b"}"#),
        (
            Content::image(b"\x00\xff", "image/png"),
            r#"{"type":"image","data":"AP8=","mimeType":"image/png"}"#,
        ),
        (
            Content::embedded(ResourceContents::text("file:///a", "x").mime("text/plain")),
            r#"{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"x"}}"#,
        ),
        (
            Content::embedded(ResourceContents::blob("file:///a", b"\x00\xff")),
            r#"{"type":"resource","resource":{"uri":"file:///a","blob":"AP8="}}"#,
        ),
        (
            Content::Other(raw(r#"{"type":"hologram","q": 1}"#).members().unwrap()),
            r#"{"type":"hologram","q":1}"#,
        ),
    ] {
        check(|dialect, writer| block.write(dialect, writer), [expected, "", "", "", ""]);
    }
}

#[test]
fn audio_becomes_an_embedded_blob_in_the_first_revision() {
    let audio = Content::audio(b"\x00\xff", "audio/wav");
    check(
        |dialect, writer| audio.write(dialect, writer),
        [
            r#"{"type":"resource","resource":{"uri":"embedded:audio/0b86c18be9142a7b","mimeType":"audio/wav","blob":"AP8="}}"#,
            r#"{"type":"audio","data":"AP8=","mimeType":"audio/wav"}"#,
            "",
            "",
            "",
        ],
    );
}

#[test]
fn resource_link_becomes_text_before_the_third_revision() {
    let described = Resource {
        title: Some("T".into()),
        description: Some("what".into()),
        ..Resource::new("file:///a", "a")
    };
    let link = Content::link(described);
    check(
        |dialect, writer| link.write(dialect, writer),
        [
            r#"{"type":"text","text":"a — file:///a\nwhat"}"#,
            "",
            r#"{"type":"resource_link","uri":"file:///a","name":"a","title":"T","description":"what"}"#,
            "",
            "",
        ],
    );
}

#[test]
fn content_block_loses_meta_and_last_modified_in_old_dialects() {
    let block = Content::Text(TextContent {
        text: "x".into(),
        annotations: Some(Annotations {
            priority: Some(1.0),
            last_modified: Some("d".into()),
            ..Annotations::default()
        }),
        meta: Some(raw(r#"{"com.x/a":1}"#).members().unwrap()),
        rest: raw(r#"{"type":"image","new":[ ]}"#).members().unwrap(),
    });
    check(
        |dialect, writer| block.write(dialect, writer),
        [
            r#"{"type":"text","text":"x","annotations":{"priority":1},"new":[ ]}"#,
            "",
            r#"{"type":"text","text":"x","annotations":{"priority":1,"lastModified":"d"},"_meta":{"com.x/a":1},"new":[ ]}"#,
            "",
            "",
        ],
    );
}

#[test]
fn structured_objects_are_mirrored_as_text_where_they_are_dropped() {
    let result = CallToolResult {
        content: vec![Content::text("twenty degrees")],
        structured: Some(raw(r#"{ "degrees": 20 }"#)),
        ..CallToolResult::default()
    };
    check(
        |dialect, writer| result.write(dialect, writer),
        [
            r#"{"content":[{"type":"text","text":"twenty degrees"},{"type":"text","text":"{ \"degrees\": 20 }"}]}"#,
            "",
            r#"{"content":[{"type":"text","text":"twenty degrees"}],"structuredContent":{ "degrees": 20 }}"#,
            "",
            "",
        ],
    );
}

#[test]
fn existing_text_mirror_is_not_repeated_in_any_spacing() {
    for mirror in [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#] {
        let result = CallToolResult {
            content: vec![Content::text(mirror)],
            structured: Some(raw(r#"{"a":1,"b":2}"#)),
            ..CallToolResult::default()
        };
        for dialect in Dialect::ALL {
            let json = written(|writer| result.write(dialect, writer));
            assert_eq!(CallToolResult::read(&raw(&json)).unwrap().content, result.content, "{mirror}");
        }
    }
}

#[test]
fn structured_values_that_are_no_objects_are_wrapped_or_dropped() {
    for (value, wrapped, text) in [
        ("[1, 2]", r#"{"result":[1, 2]}"#, r#""[1, 2]""#),
        ("null", r#"{"result":null}"#, r#""null""#),
        ("\"a\"", r#"{"result":"a"}"#, r#""\"a\"""#),
    ] {
        let result = CallToolResult::structured(raw(value));
        let content = format!(r#""content":[{{"type":"text","text":{text}}}]"#);
        check(
            |dialect, writer| result.write(dialect, writer),
            [
                &format!("{{{content}}}"),
                "",
                &format!("{{{content},\"structuredContent\":{wrapped}}}"),
                "",
                &format!("{{{content},\"structuredContent\":{value}}}"),
            ],
        );
    }
}

#[test]
fn result_meta_is_kept_in_every_revision() {
    let result = CallToolResult {
        meta: Some(raw(r#"{"com.x/a":1}"#).members().unwrap()),
        rest: raw(r#"{"resultType":"complete","extra":0}"#).members().unwrap(),
        ..CallToolResult::error("no")
    };
    check(
        |dialect, writer| result.write(dialect, writer),
        [
            r#"{"content":[{"type":"text","text":"no"}],"isError":true,"extra":0,"_meta":{"com.x/a":1}}"#,
            "",
            "",
            "",
            "",
        ],
    );
}

#[test]
fn prompt_messages_are_written_like_other_content() {
    let result = GetPromptResult {
        description: Some("d".into()),
        messages: vec![
            PromptMessage::user("hi"),
            PromptMessage::assistant(Content::link(Resource::new("u:", "n"))),
        ],
        ..GetPromptResult::default()
    };
    let head = r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hi"}},{"role":"assistant","content":"#;
    check(
        |dialect, writer| result.write(dialect, writer),
        [
            &format!("{head}{}}}]}}", r#"{"type":"text","text":"n — u:"}"#),
            "",
            &format!("{head}{}}}]}}", r#"{"type":"resource_link","uri":"u:","name":"n"}"#),
            "",
            "",
        ],
    );
}
