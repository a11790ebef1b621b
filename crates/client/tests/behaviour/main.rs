//! What a client does, whatever the server is.

mod features;
mod probing;
mod steps;
mod support;
