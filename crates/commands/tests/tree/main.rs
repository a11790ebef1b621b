//! From a clap tree to tools, and from a call back to the command line that the tree reads.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

mod hostile;
mod lines;
mod random;
mod round_trip;
mod schemas;
mod support;
