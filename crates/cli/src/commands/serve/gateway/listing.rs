//! The server list that is printed at the start.

use std::fmt::Write as _;

use trunkline_config::{ServerConfig, StartMode};

use super::Gateway;
use crate::builtin;
use crate::exit::print_stderr;
use crate::terminal::escape_line;

impl Gateway {
    /// Summarizes what is served.
    pub(in crate::commands::serve) fn summary(&self) -> String {
        let plan = self.plan();
        let servers = match (plan.servers.len(), plan.excluded.len()) {
            (0, 0) => None,
            (1, _) => Some("1 server".to_owned()),
            (several, _) => Some(format!("{several} servers")),
        };
        let servers = servers.map(|count| format!("{count} from {}", plan.file.path().display()));
        let excluded = Some(plan.excluded.len()).filter(|count| *count > 0);
        let servers = servers.map(|servers| match excluded {
            Some(count) => format!("{servers} ({count} unavailable)"),
            None => servers,
        });
        let builtin = Some(builtin::names(&self.builtin(&plan))).filter(|names| !names.is_empty());
        let described = plan.described.names().into_iter().map(str::to_owned);
        let all: Vec<String> = servers.into_iter().chain(builtin).chain(described).collect();
        escape_line(&all.join(", ")).into_owned()
    }

    /// Prints the programs to start and the URLs to connect to, before that happens.
    pub(in crate::commands::serve) fn print_all_servers(&self) {
        let plan = self.plan();
        self.print_servers(&plan.servers.iter().collect::<Vec<_>>());
        self.log_excluded();
    }

    pub(super) fn print_servers(&self, servers: &[&ServerConfig]) {
        let listing = listing(servers);
        if self.inner.stderr_is_json {
            listing.lines().for_each(|line| tracing::info!(server = line.trim(), "serving"));
        } else if !listing.is_empty() {
            print_stderr(&format!("{listing}\n"));
        }
    }
}

/// Lists servers, each with what is started or connected to, and when.
fn listing(servers: &[&ServerConfig]) -> String {
    let width = servers.iter().map(|server| server.name.as_str().chars().count()).max().unwrap_or(0);
    let mut listing = String::new();
    for server in servers {
        let location = server.location.to_string();
        let (name, location, when) =
            (escape_line(server.name.as_str()), escape_line(&location), start_condition(server));
        // Writing to a string cannot fail.
        let _ = writeln!(listing, "  {name:width$}  {location}  ({when})");
    }
    listing
}

fn start_condition(server: &ServerConfig) -> &'static str {
    match (server.enabled, server.start) {
        (false, _) => "disabled",
        (true, StartMode::Eager) => "now",
        (true, StartMode::Lazy) => "on first use",
    }
}
