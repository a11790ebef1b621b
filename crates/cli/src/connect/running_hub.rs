use std::path::{Path, PathBuf};

use trunkline_client::transport::Target;
use trunkline_config::find;

use super::command_words::{TARGET_FORMS, target_failure};
use super::options::ConnectArgs;
use crate::admin::AdminClient;
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::terminal::escape_line;

/// Returns the URL of the hub that runs from the named file, or else from the one of this folder.
///
/// # Errors
/// No hub runs from it, or it serves no URL.
pub(super) fn running_hub(args: &ConnectArgs) -> Result<Target, CliFailure> {
    let path = args.reach.config.clone().or_else(|| find::find_in_folder(Path::new("")));
    let path = path.unwrap_or_else(|| PathBuf::from("trunkline.toml"));
    let file = path.display();
    let hub = AdminClient::find(&path)?.ok_or_else(|| {
        CliFailure::new(ExitReason::Unreachable, format!("no hub is running from {file}"))
            .hint(format!("start one with `trunkline serve`, or add TARGET: {TARGET_FORMS}"))
    })?;
    let report = hub.report()?;
    let url = report.url.ok_or_else(|| {
        let message = format!("the hub running from {file} (pid {}) serves only stdio", report.pid);
        CliFailure::new(ExitReason::Unreachable, message).hint("`trunkline serve` serves a URL")
    })?;
    if !args.quiet {
        print_stderr(&format!("hub running from {file} at {}\n", escape_line(&url)));
    }
    url.parse::<Target>().map_err(|error| target_failure(&url, &error))
}
