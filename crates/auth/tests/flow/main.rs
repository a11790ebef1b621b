//! Walks the authorization flow with canned responses, without IO.

mod driver;
mod fallback;
mod grants;
mod metadata;
mod registration;
mod responses;
mod step_up;
