use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{
    CallToolResult, Content, PromptMessage, Resource, ResourceBody, ResourceContents,
};
use trunkline_protocol::{JsonWriter, RawJson};

use super::json::one_line;
use super::media::format_size;
use super::value::format_value;
use crate::terminal::{TextStyle, escape_line, escape_text, first_line};

/// One piece of what a server answered, in the form in which it is shown or saved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ContentPiece {
    /// Text, and the media type and name that it has if it is a resource.
    Text { text: String, mime_type: Option<String>, name: Option<String> },
    /// A value for programs.
    Structured(RawJson),
    /// Bytes: what they are, in base64, and what the server calls them.
    Media { what: &'static str, mime_type: String, data: String, name: Option<String> },
    /// A resource that can be read.
    Link(Box<Resource>),
    /// A line between pieces.
    Heading(String),
}

impl ContentPiece {
    fn text(text: &str) -> Self {
        Self::Text { text: text.to_owned(), mime_type: None, name: None }
    }

    /// Formats the piece as text; every line is escaped and terminated.
    pub(crate) fn show(&self, columns: usize, style: TextStyle) -> String {
        match self {
            Self::Text { text, .. } => {
                let mut shown = escape_text(text).into_owned();
                if !shown.ends_with('\n') {
                    shown.push('\n');
                }
                shown
            }
            Self::Structured(value) => format_value(value, columns),
            Self::Media { what, mime_type, data, name } => {
                let name = name.as_deref().map(|name| format!(" {}", escape_line(name))).unwrap_or_default();
                let size = format_size(decoded_length(data));
                let line = format!("[{what}{name}: {}, {size}; --out saves it]", escape_line(mime_type));
                format!("{}\n", style.dim(&line))
            }
            Self::Link(link) => show_link(link, style),
            Self::Heading(words) => format!("{}\n", style.dim(&escape_line(words))),
        }
    }

    /// Returns the bytes to save, if the piece is something to save.
    ///
    /// # Errors
    /// The server sent something else than base64.
    pub(crate) fn bytes(&self) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Text { text, .. } => Ok(Some(text.clone().into_bytes())),
            Self::Structured(value) => Ok(Some(format!("{}\n", one_line(value)).into_bytes())),
            Self::Media { what, data, .. } => {
                let bytes = BASE64.decode(data.trim());
                bytes.map(Some).map_err(|error| format!("the {what} is not valid base64: {error}"))
            }
            Self::Link(_) | Self::Heading(_) => Ok(None),
        }
    }
}

/// Takes a result of a tool apart. A text that only repeats the structured content is shown as what it repeats.
pub(crate) fn pieces_of_call(result: &CallToolResult) -> Vec<ContentPiece> {
    let mut structured = result.structured.as_ref();
    let mut pieces = Vec::new();
    for block in &result.content {
        let both = block.as_text().zip(structured);
        if let Some(value) = both.and_then(|(text, value)| repeated_value(text, value)) {
            pieces.push(ContentPiece::Structured(value));
            structured = None;
        } else {
            push_content(block, &mut pieces);
            if both.is_some_and(|(text, value)| only_wraps(value, text)) {
                structured = None;
            }
        }
    }
    pieces.extend(structured.map(|value| ContentPiece::Structured(value.clone())));
    pieces
}

/// Splits the messages of a prompt, each under its role.
pub(crate) fn pieces_of_messages(messages: &[PromptMessage]) -> Vec<ContentPiece> {
    let mut pieces = Vec::new();
    for message in messages {
        pieces.push(ContentPiece::Heading(format!("{}:", message.role.as_str())));
        push_content(&message.content, &mut pieces);
    }
    pieces
}

/// Takes what was read from a resource apart; several contents have their URIs above them.
pub(crate) fn pieces_of_contents(contents: &[ResourceContents]) -> Vec<ContentPiece> {
    let mut pieces = Vec::new();
    for content in contents {
        if contents.len() > 1 {
            pieces.push(ContentPiece::Heading(resource_heading(content)));
        }
        pieces.push(resource_piece(content));
    }
    pieces
}

/// Takes one block apart.
pub(crate) fn push_content(block: &Content, pieces: &mut Vec<ContentPiece>) {
    let media = |what, mime_type: &str, data: &str| ContentPiece::Media {
        what,
        mime_type: mime_type.to_owned(),
        data: data.to_owned(),
        name: None,
    };
    match block {
        Content::Text(text) => pieces.push(ContentPiece::text(&text.text)),
        Content::Image(image) => pieces.push(media("image", &image.mime_type, &image.data)),
        Content::Audio(audio) => pieces.push(media("audio", &audio.mime_type, &audio.data)),
        Content::Resource(embedded) => {
            if matches!(embedded.resource.body, ResourceBody::Text(_)) {
                pieces.push(ContentPiece::Heading(resource_heading(&embedded.resource)));
            }
            pieces.push(resource_piece(&embedded.resource));
        }
        Content::ResourceLink(link) => pieces.push(ContentPiece::Link(Box::new(link.clone()))),
        Content::ToolUse(_) | Content::ToolResult(_) => {
            let mut writer = JsonWriter::with_capacity(128);
            block.write(Dialect::NEWEST, &mut writer);
            pieces.push(ContentPiece::Structured(writer.into_raw()));
        }
        Content::Other(object) => pieces.push(ContentPiece::Structured(object.to_raw())),
    }
}

fn resource_heading(contents: &ResourceContents) -> String {
    let mime_type = contents.mime_type.as_deref().map(|mime_type| format!(" ({mime_type})"));
    format!("{}{}:", contents.uri, mime_type.unwrap_or_default())
}

fn resource_piece(contents: &ResourceContents) -> ContentPiece {
    let name = Some(contents.uri.clone());
    match &contents.body {
        ResourceBody::Text(text) => {
            ContentPiece::Text { text: text.clone(), mime_type: contents.mime_type.clone(), name }
        }
        ResourceBody::Blob(data) => ContentPiece::Media {
            what: "blob",
            mime_type: contents.mime_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned()),
            data: data.clone(),
            name,
        },
    }
}

fn show_link(link: &Resource, style: TextStyle) -> String {
    let title = link.title.as_deref().unwrap_or(&link.name);
    let description = link.description.as_deref().map(first_line).filter(|line| !line.is_empty());
    let about = description.map(|line| format!("\n  {line}")).unwrap_or_default();
    let mime_type = link.mime_type.as_deref().map(|mime_type| format!(" ({})", escape_line(mime_type)));
    let line = format!("{}: {}{}", escape_line(title), escape_line(&link.uri), mime_type.unwrap_or_default());
    format!("{}{about}\n", style.bold(&line))
}

/// Returns the value that a text repeats: the structured content, or what it was wrapped around.
fn repeated_value(text: &str, value: &RawJson) -> Option<RawJson> {
    let parsed = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
    let said = parsed(text)?;
    if parsed(value.as_str()).as_ref() == Some(&said) {
        return Some(value.clone());
    }
    let members = value.members().ok()?;
    let [(name, inner)] = members.iter().collect::<Vec<_>>()[..] else { return None };
    // Before 2026-07-28 a value that is not an object was wrapped as `result`; any other member name is kept.
    let shown = if name == "result" { inner } else { value };
    (parsed(inner.as_str()).as_ref() == Some(&said)).then(|| shown.clone())
}

/// Reports whether a value has nothing but a text in one member, as some servers write what is text.
fn only_wraps(value: &RawJson, text: &str) -> bool {
    let members = value.members().unwrap_or_default();
    let mut members = members.iter();
    let is_it = members.next().is_some_and(|(_, member)| member.as_text().as_deref() == Some(text));
    is_it && members.next().is_none()
}

fn decoded_length(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count().min(2);
    (base64.len() / 4 * 3).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::terminal::is_unsafe_char;

    fn shown(pieces: &[ContentPiece]) -> String {
        pieces.iter().map(|piece| piece.show(60, TextStyle::PLAIN)).collect()
    }

    #[test]
    fn every_kind_of_content_is_shown() {
        let mut link = Resource::new("demo://x", "x");
        link.description = Some("What\nit is.".to_owned());
        let result = CallToolResult {
            content: vec![
                Content::text("hello\x1b[0m"),
                Content::image(&[0; 70], "image/png"),
                Content::audio(&[0; 3], "audio/wav"),
                Content::embedded(ResourceContents::text("demo://t", "inside").mime("text/plain")),
                Content::embedded(ResourceContents::blob("demo://b", &[1])),
                Content::link(link),
            ],
            ..CallToolResult::default()
        };
        assert_eq!(
            shown(&pieces_of_call(&result)),
            "hello\\x1b[0m\n\
             [image: image/png, 70 bytes; --out saves it]\n\
             [audio: audio/wav, 3 bytes; --out saves it]\n\
             demo://t (text/plain):\ninside\n\
             [blob demo://b: application/octet-stream, 1 byte; --out saves it]\n\
             x: demo://x\n  What\n"
        );
    }

    #[test]
    fn structured_content_is_shown_once_and_readably() {
        let value = RawJson::from(json!({ "sum": 5 }));
        let mirrored = CallToolResult::structured(value.clone());
        assert_eq!(shown(&pieces_of_call(&mirrored)), "sum: 5\n");
        let spaced = CallToolResult { content: vec![Content::text("{ \"sum\": 5 }")], ..mirrored.clone() };
        assert_eq!(shown(&pieces_of_call(&spaced)), "sum: 5\n");
        let said = CallToolResult { content: vec![Content::text("It is five.")], ..mirrored };
        assert_eq!(shown(&pieces_of_call(&said)), "It is five.\nsum: 5\n");
        let text = CallToolResult {
            content: vec![Content::text("plain")],
            structured: Some(RawJson::from(json!({ "content": "plain" }))),
            ..CallToolResult::default()
        };
        assert_eq!(shown(&pieces_of_call(&text)), "plain\n");
        let wrapped = CallToolResult {
            content: vec![Content::text("[1,2]")],
            structured: Some(RawJson::from(json!({ "result": [1, 2] }))),
            ..CallToolResult::default()
        };
        assert_eq!(shown(&pieces_of_call(&wrapped)), "- 1\n- 2\n");
        let named = CallToolResult { structured: Some(RawJson::from(json!({ "found": [1, 2] }))), ..wrapped };
        assert_eq!(shown(&pieces_of_call(&named)), "found: 1, 2\n");
    }

    #[test]
    fn contents_have_headings_only_where_there_are_several() {
        let one = ResourceContents::text("demo://a", "one");
        assert_eq!(shown(&pieces_of_contents(std::slice::from_ref(&one))), "one\n");
        let two = ResourceContents::text("demo://b", "two\n");
        assert_eq!(shown(&pieces_of_contents(&[one, two])), "demo://a:\none\ndemo://b:\ntwo\n");
    }

    proptest! {
        #[test]
        fn rendered_tool_results_never_control_the_terminal(text in hazardous(), key in hazardous()) {
            let mut link = Resource::new(text.clone(), key.clone());
            link.description = Some(text.clone());
            let result = CallToolResult {
                content: vec![
                    Content::text(text.clone()),
                    Content::image(&[0], text.clone()),
                    Content::embedded(ResourceContents::text(text.clone(), text.clone()).mime(key.clone())),
                    Content::embedded(ResourceContents::blob(text.clone(), &[1]).mime(text.clone())),
                    Content::link(link),
                ],
                structured: Some(json!({ key: [{ "a": text.clone(), "b": 1 }, { "a": text, "b": 2 }] }).into()),
                ..CallToolResult::default()
            };
            let shown = shown(&pieces_of_call(&result));
            prop_assert!(!shown.chars().any(|c| is_unsafe_char(c) && c != '\n' && c != '\t'), "{:?}", shown);
        }
    }

    /// Text of which a good part is what terminals obey.
    fn hazardous() -> impl Strategy<Value = String> {
        "([a-z \n]|[\u{0}-\u{1f}]|[\u{7f}-\u{9f}]|[\u{200b}-\u{206f}]|[\u{e0000}-\u{e007f}]){0,24}"
    }

    #[test]
    fn sizes_are_those_of_the_bytes() {
        for length in 0..10_usize {
            let ContentPiece::Media { data, .. } =
                resource_piece(&ResourceContents::blob("x", &vec![7; length]))
            else {
                panic!("a blob")
            };
            assert_eq!(decoded_length(&data), length);
        }
    }
}
