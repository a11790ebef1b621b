//! What each fuzz target does with its bytes, as plain functions that panic when a promise is broken.
//!
//! `cargo fuzz run <target>` searches for such bytes, and `cargo test` replays every file of `corpus/`. To add
//! a target, write its function in a module, list it in [`TARGETS`], and give it a program in `fuzz_targets/`
//! and a folder in `corpus/`.
#![forbid(unsafe_code)]

mod authorization;
mod configurations;
mod framing;
mod http;
mod messages;
mod tokens;
mod values;

use std::fs;
use std::io;

pub use self::authorization::{challenge, metadata_document};
pub use self::configurations::config_file;
pub use self::framing::{line_framer, sse_decoder, sse_roundtrip};
pub use self::http::{chunked_body, request_head, response_head};
pub use self::messages::envelope;
pub use self::tokens::{access_token, dpop_proof};
pub use self::values::{header_values, uri_template};

/// What a target does with its bytes.
pub type Body = fn(&[u8]);

/// Names every target with its body.
pub const TARGETS: &[(&str, Body)] = &[
    ("line_framer", line_framer),
    ("sse_decoder", sse_decoder),
    ("sse_roundtrip", sse_roundtrip),
    ("header_values", header_values),
    ("uri_template", uri_template),
    ("envelope", envelope),
    ("config_file", config_file),
    ("request_head", request_head),
    ("chunked_body", chunked_body),
    ("response_head", response_head),
    ("access_token", access_token),
    ("dpop_proof", dpop_proof),
    ("challenge", challenge),
    ("metadata_document", metadata_document),
];

/// Makes a program of a target: a fuzzer under `cargo fuzz`, else one that replays the files it is given.
#[macro_export]
macro_rules! target {
    ($body:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $body(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            $crate::replay(std::env::args().skip(1), $body)
        }
    };
}

/// Runs a target over the contents of files.
///
/// # Errors
/// The first error of reading a file.
pub fn replay(paths: impl Iterator<Item = String>, body: Body) -> io::Result<()> {
    for path in paths {
        body(&fs::read(path)?);
    }
    Ok(())
}
