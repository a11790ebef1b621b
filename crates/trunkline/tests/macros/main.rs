//! What the attributes and the derive expand to, as a client sees it.

mod blocks;
mod examples;
mod forms;
mod prompts;
mod questions;
mod resources;
mod returned;
mod support;
mod tools;
