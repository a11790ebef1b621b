//! Blocks that are no parts.

use std::sync::Arc;

use trunkline::prelude::*;

struct Calculator;

#[parts(name = "x")]
impl Calculator {
    #[tool]
    fn mutable(&mut self) {}

    #[tool]
    fn owned(self) {}

    #[tool]
    fn generic<T>(&self, _value: T) {}

    #[tool]
    #[prompt]
    fn both(&self) -> String {
        String::new()
    }

    #[tool]
    fn fine(self: Arc<Self>) {}
}

struct Empty;

#[parts]
impl Empty {
    fn add(&self) {}
}

struct Shown;

#[parts]
impl std::fmt::Display for Shown {
    #[tool]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("")
    }
}

#[parts]
struct Thing;

fn main() {
    let _ = Server::new("test").with(Calculator).with(Empty);
}
