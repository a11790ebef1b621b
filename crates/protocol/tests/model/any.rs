//! Arbitrary values of the model.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use trunkline_protocol::model::*;
use trunkline_protocol::{ByteString, JsonObject, RawJson};

/// Any JSON, with the spelling that a rewriting reader would lose: odd numbers, odd spaces, needless escapes.
pub(super) fn json() -> impl Strategy<Value = RawJson> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.0".to_owned()),
        Just("-0".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("1E+2".to_owned()),
        Just(r#""\u0041\/""#.to_owned()),
        "[a-z \u{e9}\u{1F600}]{0,6}".prop_map(|text| format!("\"{text}\"")),
    ];
    let nested = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[ {}]", items.join(" , "))),
            vec(inner, 0..3).prop_map(|items| {
                let members: Vec<_> =
                    items.iter().enumerate().map(|(n, item)| format!("\"k{n}\" : {item}")).collect();
                format!("{{ {} }}", members.join(","))
            }),
        ]
    });
    nested.prop_map(|text| RawJson::parse(text).unwrap())
}

/// Members with names that no type has.
pub(super) fn unknown() -> impl Strategy<Value = JsonObject> {
    vec(("x-[a-z\"\u{e9}]{1,3}", json()), 0..4)
        .prop_map(|members| members.into_iter().map(|(key, value)| (ByteString::from(key), value)).collect())
}

fn meta() -> impl Strategy<Value = Option<JsonObject>> {
    of(unknown())
}

fn text() -> impl Strategy<Value = String> {
    "[a-z\"\\\\\n\u{e9}\u{1F600}]{0,8}"
}

fn maybe() -> impl Strategy<Value = Option<String>> {
    of(text())
}

pub(super) fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::User), Just(Role::Assistant)]
}

pub(super) fn icon() -> impl Strategy<Value = Icon> {
    (text(), maybe(), vec(text(), 0..3), maybe(), unknown())
        .prop_map(|(src, mime_type, sizes, theme, rest)| Icon { src, mime_type, sizes, theme, rest })
}

fn icons() -> impl Strategy<Value = Vec<Icon>> {
    vec(icon(), 0..2)
}

pub(super) fn implementation() -> impl Strategy<Value = Implementation> {
    (text(), text(), maybe(), maybe(), maybe(), icons(), unknown()).prop_map(
        |(name, version, title, description, website_url, icons, rest)| Implementation {
            name,
            version,
            title,
            description,
            website_url,
            icons,
            rest,
        },
    )
}

fn annotations() -> impl Strategy<Value = Option<Annotations>> {
    let thousandth = (0_u16..=1000).prop_map(|n| f64::from(n) / 1000.0);
    of((vec(role(), 0..3), of(thousandth), maybe(), unknown()).prop_map(
        |(audience, priority, last_modified, rest)| Annotations { audience, priority, last_modified, rest },
    ))
}

pub(super) fn tool() -> impl Strategy<Value = Tool> {
    let flag = || of(any::<bool>());
    let hints = (maybe(), flag(), flag(), flag(), flag(), unknown()).prop_map(
        |(title, read_only, destructive, idempotent, open_world, rest)| ToolAnnotations {
            title,
            read_only,
            destructive,
            idempotent,
            open_world,
            rest,
        },
    );
    // `null` reads as absent, so it is not an output schema.
    let schema = json().prop_filter("a schema", |schema| !schema.is_null());
    (text(), maybe(), maybe(), json(), of(schema), of(hints), icons(), meta(), unknown()).prop_map(
        |(name, title, description, input_schema, output_schema, annotations, icons, meta, rest)| Tool {
            name,
            title,
            description,
            input_schema,
            output_schema,
            annotations,
            icons,
            meta,
            rest,
        },
    )
}

pub(super) fn resource() -> impl Strategy<Value = Resource> {
    let names = (text(), text(), maybe(), maybe(), maybe());
    (names, of(any::<u64>()), annotations(), icons(), meta(), unknown()).prop_map(
        |((uri, name, title, description, mime_type), size, annotations, icons, meta, rest)| Resource {
            uri,
            name,
            title,
            description,
            mime_type,
            size,
            annotations,
            icons,
            meta,
            rest,
        },
    )
}

pub(super) fn template() -> impl Strategy<Value = ResourceTemplate> {
    let names = (text(), text(), maybe(), maybe(), maybe());
    (names, annotations(), icons(), meta(), unknown()).prop_map(
        |((uri_template, name, title, description, mime_type), annotations, icons, meta, rest)| {
            ResourceTemplate {
                uri_template,
                name,
                title,
                description,
                mime_type,
                annotations,
                icons,
                meta,
                rest,
            }
        },
    )
}

pub(super) fn contents() -> impl Strategy<Value = ResourceContents> {
    let body = prop_oneof![text().prop_map(ResourceBody::Text), text().prop_map(ResourceBody::Blob)];
    (text(), maybe(), body, meta(), unknown())
        .prop_map(|(uri, mime_type, body, meta, rest)| ResourceContents { uri, mime_type, body, meta, rest })
}

pub(super) fn content() -> impl Strategy<Value = Content> {
    let block = (text(), annotations(), meta(), unknown())
        .prop_map(|(text, annotations, meta, rest)| TextContent { text, annotations, meta, rest });
    let media = || {
        (text(), text(), annotations(), meta(), unknown()).prop_map(
            |(data, mime_type, annotations, meta, rest)| MediaContent {
                data,
                mime_type,
                annotations,
                meta,
                rest,
            },
        )
    };
    let embedded =
        (contents(), annotations(), meta(), unknown()).prop_map(|(resource, annotations, meta, rest)| {
            EmbeddedResource { resource, annotations, meta, rest }
        });
    let carried = |kind: &'static str| {
        unknown().prop_map(move |mut members| {
            members.set("type", RawJson::from_text(kind));
            members
        })
    };
    prop_oneof![
        block.prop_map(Content::Text),
        media().prop_map(Content::Image),
        media().prop_map(Content::Audio),
        embedded.prop_map(Content::Resource),
        resource().prop_map(Content::ResourceLink),
        (text(), text(), unknown()).prop_map(|(id, name, rest)| {
            Content::ToolUse(ToolUseContent { id, name, input: RawJson::EMPTY_OBJECT, meta: None, rest })
        }),
        (text(), any::<bool>(), unknown()).prop_map(|(tool_use_id, is_error, rest)| {
            let content = vec![Content::text("said")];
            Content::ToolResult(ToolResultContent {
                tool_use_id,
                content,
                is_error,
                rest,
                ..ToolResultContent::default()
            })
        }),
        carried("x-new").prop_map(Content::Other),
    ]
}

pub(super) fn prompt() -> impl Strategy<Value = Prompt> {
    let argument = (text(), maybe(), maybe(), of(any::<bool>()), unknown()).prop_map(
        |(name, title, description, required, rest)| PromptArgument {
            name,
            title,
            description,
            required,
            rest,
        },
    );
    (text(), maybe(), maybe(), vec(argument, 0..3), icons(), meta(), unknown()).prop_map(
        |(name, title, description, arguments, icons, meta, rest)| Prompt {
            name,
            title,
            description,
            arguments,
            icons,
            meta,
            rest,
        },
    )
}

pub(super) fn tool_result() -> impl Strategy<Value = CallToolResult> {
    (vec(content(), 0..3), of(json()), any::<bool>(), meta(), unknown()).prop_map(
        |(content, structured, is_error, meta, rest)| CallToolResult {
            content,
            structured,
            is_error,
            meta,
            rest,
        },
    )
}

pub(super) fn prompt_result() -> impl Strategy<Value = GetPromptResult> {
    let message = (role(), content(), unknown()).prop_map(|(role, content, rest)| PromptMessage {
        role,
        content,
        rest,
    });
    (maybe(), vec(message, 0..3), meta(), unknown())
        .prop_map(|(description, messages, meta, rest)| GetPromptResult { description, messages, meta, rest })
}

pub(super) fn read_result() -> impl Strategy<Value = ReadResourceResult> {
    let scope = prop_oneof![Just(CacheScope::Public), Just(CacheScope::Private)];
    let cache = (any::<u64>(), scope).prop_map(|(ttl_ms, scope)| CacheHint { ttl_ms, scope });
    (vec(contents(), 0..3), cache, meta(), unknown())
        .prop_map(|(contents, cache, meta, rest)| ReadResourceResult { contents, cache, meta, rest })
}

pub(super) fn complete_result() -> impl Strategy<Value = CompleteResult> {
    (vec(text(), 0..4), of(any::<u64>()), of(any::<bool>()), unknown(), meta(), unknown()).prop_map(
        |(values, total, has_more, completion_rest, meta, rest)| CompleteResult {
            values,
            total,
            has_more,
            completion_rest: Box::new(completion_rest),
            meta,
            rest,
        },
    )
}
