//! Closed loops: a fixed number of requests is always under way, and every answer starts the next request.

mod http;
mod stdio;
mod window;

pub(crate) use http::drive_http;
pub(crate) use stdio::drive_stdio;
pub(crate) use window::{Behind, Plan, Sample, Window};
