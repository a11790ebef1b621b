//! Functions that cannot be tools.

use trunkline::prelude::*;

#[tool]
async fn generic<T>(value: T) {}

#[tool]
async fn lifetime<'a>(value: i64) {}

#[tool]
async unsafe fn dangerous() {}

#[tool]
extern "C" fn foreign() {}

#[tool]
const fn constant() -> i64 {
    1
}

#[tool]
async fn method(&self) -> i64 {
    1
}

#[tool]
struct Thing;

fn main() {}
