//! The measured servers: where their binaries are, how they are started, how they end.

mod binaries;
mod http;
mod process;
mod stdio;

pub(crate) use binaries::{Binaries, Kind, Launch, Program, ServerOutput};
pub(crate) use http::{HttpServer, free_address};
pub(crate) use stdio::StdioServer;
