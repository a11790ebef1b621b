use std::path::{Path, PathBuf};

use trunkline_client::transport::Target;
use trunkline_config::find;

use super::command_words::{TARGET_FORMS, target_failure};
use super::options::ConnectArgs;
use crate::admin::{AdminClient, ServerState};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::terminal::escape_line;

/// Returns the URL and the admin socket of the hub that runs from the named file, or else from the one of this folder.
///
/// # Errors
/// No hub runs from it, or it serves no URL.
pub(super) fn running_hub(args: &ConnectArgs) -> Result<(Target, AdminClient), CliFailure> {
    let path = args.target_options.config.clone().or_else(|| find::find_in_folder(Path::new("")));
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
    let target = url.parse::<Target>().map_err(|error| target_failure(&url, &error))?;
    Ok((target, hub))
}

/// Names the servers of a hub without listed tools, such as those that are still starting; `None` if there are none.
pub(crate) fn unlisted_servers(hub: Option<&AdminClient>) -> Option<String> {
    // A hub that no longer answers has ended its calls too, which is reported.
    let servers = hub?.status().ok()?;
    let is_unlisted =
        |server: &&ServerState| server.tools == 0 && !matches!(&*server.state, "ready" | "disabled");
    let names = servers
        .iter()
        .filter(is_unlisted)
        .map(|server| format!("`{}` ({})", escape_line(&server.name), escape_line(&server.state)));
    let names: Vec<String> = names.collect();
    (!names.is_empty())
        .then(|| format!("no tools are listed yet of {}; see `trunkline servers`", names.join(", ")))
}
