use std::path::Path;

use crate::link_target::follow_links;

/// Returns a file as it is shown and fingerprinted, with links resolved. If it is written with variables, their values are
/// not shown unless a link among them leads elsewhere.
pub(super) fn shown_file(expanded: &Path, written: &str) -> String {
    let target = follow_links(expanded);
    let path = target.path.display();
    match written.contains("${") {
        false => path.to_string(),
        true if target.has_links => format!("{written} ({path})"),
        true => written.to_owned(),
    }
}
