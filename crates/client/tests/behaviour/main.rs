//! What a client does, whatever the server is.

mod features;
mod support;
