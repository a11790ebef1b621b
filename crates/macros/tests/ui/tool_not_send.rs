//! A future that cannot move between threads.

use std::rc::Rc;

use trunkline::prelude::*;

#[tool]
async fn held() -> i64 {
    let count = Rc::new(1);
    std::future::ready(()).await;
    *count
}

fn main() {}
