//! The guide to commands matches the code.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;

use trunkline_commands::ManifestLimits;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

#[test]
fn commands_guide_contains_the_example_verbatim() {
    let example = read("examples/greet.rs");
    let code = example.split_at(example.find("use clap").unwrap()).1;
    assert!(read("docs/commands.md").contains(&format!("```rust\n{code}```\n")));
}

#[test]
fn manifest_limits_are_documented() {
    let ManifestLimits { depth, files, entries, timeout: within, bytes, watched } = ManifestLimits::default();
    let thousands = |number: usize| match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    };
    let document = read("docs/limits.md");
    for (name, value) in [
        ("depth", thousands(depth)),
        ("files", thousands(files)),
        ("entries", thousands(entries)),
        ("timeout", format!("{} ms", within.as_millis())),
        ("bytes", format!("{} MiB", bytes >> 20)),
        ("watched", thousands(watched)),
    ] {
        let row = format!("| `ManifestLimits::{name}` | {value} |");
        assert!(document.lines().any(|line| line.starts_with(&row)), "docs/limits.md lacks {row}");
    }
}
