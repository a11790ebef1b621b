use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use super::item::{TrustItem, TrustSubject};
use crate::exit::{CliFailure, print_stderr};
use crate::terminal::{escape_line, pad};

/// Lists items for the user to review: every command line, with its variables and folder, and every setting.
pub(crate) fn list_items(items: &[TrustItem]) -> String {
    let names: Vec<_> = items.iter().map(|item| escape_line(&item.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (item, name) in items.iter().zip(&names) {
        let kind = match (item.subject, item.enabled) {
            (TrustSubject::Command, _) => "  (run by clients)",
            (_, false) => "  (disabled)",
            (_, true) => "",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}  {}{kind}", pad(name, width), escape_line(&item.line));
        for detail in &item.details {
            let _ = writeln!(text, "  {}    {}", " ".repeat(width), escape_line(detail));
        }
    }
    text
}

/// Prompts the user at the terminal for trust in items of a file.
///
/// # Errors
/// There is no terminal, or the user declines.
pub(crate) fn ask(file: &Path, items: &[TrustItem]) -> Result<(), CliFailure> {
    let (path, names) = (file.display(), names(items));
    let advice = format!("review the file, then run `trunkline trust {path}`");
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliFailure::configuration(format!("{path} is not trusted yet; it would use {names}"))
            .hint(format!("{advice}, or pass `--trust`")));
    }
    let what = format!("{path} is not trusted yet. It would run, write or send:\n\n");
    print_stderr(&format!(
        "{what}{}\nTrust it? This is asked once, and again if it changes. [y/N] ",
        list_items(items)
    ));
    let mut answer = String::new();
    // An unreadable terminal is a no.
    let _ = io::stdin().read_line(&mut answer);
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(CliFailure::configuration(format!("{path} is not trusted; nothing was started"))
        .hint(format!("{advice}, or use `--no-config` for the built-in servers")))
}

/// Names the first few items.
fn names(items: &[TrustItem]) -> String {
    const SHOWN: usize = 8;
    let names: Vec<String> = items.iter().take(SHOWN).map(|item| format!("`{}`", item.name)).collect();
    let more = items.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
