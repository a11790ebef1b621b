//! The checks that drive a server with the command `trunkline`.

use crate::options::Options;
use crate::report::Report;

/// Runs every check that the server has.
///
/// # Errors
/// Nobody knows the server.
#[allow(clippy::unused_async)]
pub(crate) async fn run(options: &Options, _: &mut Report) -> Result<(), String> {
    Err(format!("there are no checks for `{}`", options.server))
}
