//! What a client does, whatever the server is.

mod features;
mod hostile;
mod lists;
mod probing;
mod steps;
mod support;
