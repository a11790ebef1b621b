//! An argument whose type cannot be deserialized.

use trunkline::prelude::*;

struct Plain;

#[tool]
async fn plain(_value: Plain) {}

fn main() {}
