//! Checks that concern a whole file.

use std::collections::HashSet;

use super::containers::{containers, nearest_container};
use super::{ACCESS_SECTION, ConfigFile, FileContents, SECTIONS, foreign};
use crate::de;
use crate::limits::MAX_SERVERS;
use crate::node::{NodeKind, TableEntry};
use crate::problem::{ConfigError, ConfigProblem};
use crate::syntax::ConfigFormat;

impl ConfigFile {
    /// Returns the problem of a client's file that has no table of servers at all, such as one with a misspelled key.
    pub fn missing_servers(&self) -> Option<ConfigProblem> {
        if !self.0.format.is_client() || containers(&self.0.root, self.0.format).next().is_some() {
            return None;
        }
        let FileContents { path, format, text, .. } = &*self.0;
        if let Some(problem) = foreign::other_format(path, *format, text) {
            return Some(problem);
        }
        let entries = self.0.root.entries().unwrap_or_default();
        let near = entries.iter().find_map(|entry| Some((entry, nearest_container(&entry.key)?)));
        Some(match near {
            Some((entry, meant)) => {
                let what = de::unknown_key(&entry.key, std::iter::once(meant));
                let problem = self.problem_at(entry.key_span.start, what).key(&*entry.key);
                problem.hint(format!("rename it to `{meant}`"))
            }
            None => ConfigProblem::new(
                path,
                format!("has no servers; expected {}", expected_servers(*format)),
            )
            .hint("add a server with `trunkline add NAME COMMAND`, or ignore the file with `--no-config`"),
        })
    }

    /// Checks for problems that concern the whole file.
    pub(super) fn check_root(&self) -> Result<(), ConfigError> {
        let root = &self.0.root;
        let Some(entries) = root.entries() else {
            let expected = format!("expected an object, found {}", root.kind_name());
            let other = foreign::other_format(&self.0.path, self.0.format, &self.0.text);
            return Err(other.unwrap_or_else(|| self.problem_at(root.span.start, expected)).into());
        };
        let tables: Vec<&TableEntry> = match self.0.format {
            ConfigFormat::Toml => {
                if let Some(client) = foreign::client_of(root, ConfigFormat::Toml) {
                    let format = ConfigFormat::Toml;
                    return Err(foreign::problem(&self.0.path, format, Some(client), format).into());
                }
                let unknown = entries.iter().filter(|entry| !SECTIONS.contains(&&*entry.key));
                let unknown: Vec<ConfigProblem> = unknown.map(|entry| self.unknown_section(entry)).collect();
                if !unknown.is_empty() {
                    // The mistakes of servers are reported with them, so that one run shows them all.
                    let servers = self.valid_and_invalid_servers().1.into_iter().map(|server| server.problem);
                    let error = ConfigError::of(unknown.into_iter().chain(servers));
                    return error.map_or(Ok(()), |error| Err(error.with_file(self)));
                }
                entries.iter().collect()
            }
            _ => containers(root, self.0.format).collect(),
        };
        for table in tables {
            let is_list = self.0.format == ConfigFormat::Toml && table.key == ACCESS_SECTION;
            let (fits, expected) = match is_list {
                true => (matches!(table.value.kind, NodeKind::Array(_)), "a list of tables, `[[access]]`"),
                // Programs that generate such files write unused keys as null.
                false if self.0.format.is_client() => {
                    (table.value.entries().is_some() || table.value.is_null(), "an object")
                }
                false => (table.value.entries().is_some(), "a table"),
            };
            if !fits {
                let what = format!("expected {expected}, found {}", table.value.kind_name());
                return Err(self.problem_at(table.value.span.start, what).key(&*table.key).into());
            }
        }
        self.check_names()
    }

    fn unknown_section(&self, entry: &TableEntry) -> ConfigProblem {
        let what = de::unknown_key(&entry.key, SECTIONS.iter().copied());
        self.problem_at(entry.key_span.start, what).key(&*entry.key)
    }

    /// Refuses two servers of one name, which a file with two tables of servers may have, and more than there may be.
    fn check_names(&self) -> Result<(), ConfigError> {
        let mut seen = HashSet::new();
        for entry in self.server_entries() {
            if !seen.insert(&*entry.key) {
                let what = "there is another server of this name".to_owned();
                return Err(self.problem_at(entry.key_span.start, what).server(&*entry.key).into());
            }
        }
        if seen.len() > MAX_SERVERS {
            let what = format!("has {} servers; at most {MAX_SERVERS} are possible", seen.len());
            return Err(ConfigProblem::new(&self.0.path, what).into());
        }
        Ok(())
    }
}

/// Returns an example of the servers of a client's file.
fn expected_servers(format: ConfigFormat) -> &'static str {
    match format {
        ConfigFormat::Yaml => "a list `mcpServers` as in Continue, or a mapping `extensions` as in Goose",
        ConfigFormat::ClientToml => "[mcp_servers.NAME] with `command` or `url`",
        ConfigFormat::Json | ConfigFormat::Toml => {
            "{ \"mcpServers\": { \"NAME\": { \"command\": … or \"url\": … } } }"
        }
    }
}
