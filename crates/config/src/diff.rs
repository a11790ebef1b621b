use crate::server::ServerConfig;

/// The differences between two configurations, by the names of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigDiff<'a> {
    /// Servers that are new, in the order of the new configuration.
    pub added: Vec<&'a ServerConfig>,
    /// Servers that are gone, in the order of the old configuration.
    pub removed: Vec<&'a ServerConfig>,
    /// Servers with a changed definition, in the order of the new configuration.
    pub changed: Vec<ChangedServer<'a>>,
    /// Servers with an unchanged definition, in the order of the new configuration.
    pub unchanged: Vec<&'a ServerConfig>,
}

/// A server with a changed definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedServer<'a> {
    /// The old definition.
    pub before: &'a ServerConfig,
    /// The new definition.
    pub after: &'a ServerConfig,
    /// The effect of the change on an open connection.
    pub effect: ChangeEffect,
}

/// The effect of a change on an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeEffect {
    /// The connection does not match the new definition and must be replaced.
    Reconnect,
    /// The connection stays open, and only the exposed tools change.
    KeepConnection,
}

impl ConfigDiff<'_> {
    /// Reports whether the configurations are equal.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// Compares two configurations; the order of servers is no difference.
pub fn diff<'a>(before: &'a [ServerConfig], after: &'a [ServerConfig]) -> ConfigDiff<'a> {
    let in_order = |server: &&ServerConfig| !after.iter().any(|other| other.name == server.name);
    let mut found = ConfigDiff { removed: before.iter().filter(in_order).collect(), ..ConfigDiff::default() };
    for after in after {
        match before.iter().find(|before| before.name == after.name) {
            None => found.added.push(after),
            Some(before) if before == after => found.unchanged.push(after),
            Some(before) => {
                let effect = if before.same_connection(after) {
                    ChangeEffect::KeepConnection
                } else {
                    ChangeEffect::Reconnect
                };
                found.changed.push(ChangedServer { before, after, effect });
            }
        }
    }
    found
}
