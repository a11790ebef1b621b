//! An argument whose type nobody can read.

use trunkline::prelude::*;

struct Plain;

#[tool]
async fn plain(_value: Plain) {}

fn main() {}
