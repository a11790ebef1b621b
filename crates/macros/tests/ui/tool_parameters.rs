//! Parameters that callers could not give.

use std::path::Path;

use trunkline::prelude::*;

#[tool]
async fn pattern((a, b): (i64, i64)) -> i64 {
    a + b
}

#[tool]
async fn nameless(_: i64) {}

#[tool]
async fn references(text: &str, numbers: &[i64], context: &Context, place: &Path) {}

#[tool]
async fn anything(text: impl ToString) {}

#[tool]
async fn two_contexts(one: Context, other: Context) {}

#[tool]
async fn same_name(#[rename("b")] a: i64, b: i64) {}

fn main() {
    let _ = Server::new("test").with(pattern).with(references);
}
