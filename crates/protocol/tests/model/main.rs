//! The model in every dialect: what is written, what is read back, and what is left out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics is a test that fails")]

mod any;
mod capabilities;
mod content;
mod entities;
mod mutated;
mod output_schema;
mod properties;
mod questions;
mod reading;
mod repaired_items;
mod repaired_results;
mod replies;
mod schemas;

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::{JsonWriter, RawJson};

fn raw(json: &str) -> RawJson {
    RawJson::parse(json.to_owned()).unwrap()
}

fn written(write: impl FnOnce(&mut JsonWriter)) -> String {
    let mut writer = JsonWriter::default();
    write(&mut writer);
    writer.into_string()
}

/// Checks how a value is written in the five dialects, oldest first; an empty line means "as in the line before".
#[track_caller]
fn check(write: impl Fn(&Dialect, &mut JsonWriter), expected: [&str; 5]) {
    let mut line = "";
    for (dialect, next) in Dialect::ALL.into_iter().zip(expected) {
        line = if next.is_empty() { line } else { next };
        assert_eq!(written(|writer| write(dialect, writer)), line, "{}", dialect.revision());
    }
}
