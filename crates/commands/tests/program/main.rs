//! A program with its commands as tools, called as clients call them: the example `depot`, as a process and in-process.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the example, which prints, is part of these tests"
)]

#[allow(dead_code, reason = "the example runs it, these tests only look at its arguments")]
#[path = "../../../../examples/depot/convert.rs"]
mod convert;
#[allow(dead_code, reason = "the example runs it, these tests only look at its arguments")]
#[path = "../../../../examples/depot/debug.rs"]
mod debug;
#[path = "../../../../examples/depot/tree.rs"]
mod tree;

mod authoring;
mod cancelling;
mod demos;
mod in_process;
mod listing;
mod peer;
mod resources;
mod running;
mod sequence;
mod support;
