//! A default of another type.

use trunkline::prelude::*;

#[tool]
async fn wrong(#[default(true)] _limit: u32) {}

fn main() {}
