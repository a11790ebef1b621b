//! Requests as our server reads them, beside hyper.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

#[cfg(test)]
mod differential;
#[cfg(test)]
mod support;
#[cfg(test)]
mod vectors;
