//! What the attributes and the derive expand to, as a client sees it.

#[cfg(test)]
mod blocks;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod resources;
#[cfg(test)]
mod returned;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tools;
