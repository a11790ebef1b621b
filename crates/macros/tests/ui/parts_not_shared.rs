//! A value that calls on several threads cannot share.

use std::cell::Cell;

use trunkline::prelude::*;

struct Counter {
    count: Cell<i64>,
}

#[parts]
impl Counter {
    #[tool]
    fn get(&self) -> i64 {
        self.count.get()
    }
}

fn main() {}
