//! Tools that return one of each kind of content, or fail.

use trunkline::prelude::*;

use crate::assets::{PIXEL, PNG, SILENCE, WAV};

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_simple_text")
            .description("Returns a text.")
            .run(async || "This is a simple text response for testing."),
        Tool::new("test_image_content")
            .description("Returns a picture.")
            .run(async || Content::image(PIXEL, PNG)),
        Tool::new("test_audio_content")
            .description("Returns a sound.")
            .run(async || Content::audio(SILENCE, WAV)),
        Tool::new("test_embedded_resource").description("Returns a resource.").run(async || {
            let text = "This is an embedded resource content.";
            Content::embedded(ResourceContents::text("test://embedded-resource", text).mime("text/plain"))
        }),
        Tool::new("test_multiple_content_types")
            .description("Returns a text, a picture and a resource.")
            .run(mixed),
        Tool::new("test_error_handling").description("Always fails.").run(async || {
            Err::<(), _>(ToolError::new("This tool intentionally returns an error for testing"))
        }),
    ]
}

async fn mixed() -> Vec<Content> {
    let resource = ResourceContents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    vec![
        Content::text("Multiple content types test:"),
        Content::image(PIXEL, PNG),
        Content::embedded(resource.mime("application/json")),
    ]
}
