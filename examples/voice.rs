//! A tool that answers in sound where the caller's revision has sound, and in words where it does not.
//!
//! `cargo run --example voice` serves it over standard input and output.

use trunkline::prelude::*;

/// The note A, as an eighth of a second of 8-bit samples.
fn tone() -> Vec<u8> {
    let header = *b"RIFF\x0c\x04\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\xe8\x03\0\0";
    let samples = (0..1000_u16).map(|at| if at % 18 < 9 { 96 } else { 160 });
    header.into_iter().chain(samples).collect()
}

/// Gives the note to tune an instrument by.
#[tool]
async fn note(cx: Context) -> Content {
    if cx.content_types().contains(&"audio") {
        Content::audio(&tone(), "audio/wav")
    } else {
        Content::text("An A, 440 times a second.")
    }
}

/// Makes the server.
pub(crate) fn server() -> Server {
    Server::new("voice").with(note)
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(server().serve(stdio()).await?)
}
