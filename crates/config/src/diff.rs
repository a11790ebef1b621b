use crate::server::ServerConfig;

/// What is different between two configurations, by the names of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigDiff<'a> {
    /// Servers that are new, in the order of the new configuration.
    pub added: Vec<&'a ServerConfig>,
    /// Servers that are gone, in the order of the old configuration.
    pub removed: Vec<&'a ServerConfig>,
    /// Servers that are described otherwise, in the order of the new configuration.
    pub changed: Vec<ChangedServer<'a>>,
    /// Servers that are as they were, in the order of the new configuration.
    pub unchanged: Vec<&'a ServerConfig>,
}

/// A server that is described otherwise than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedServer<'a> {
    /// As it was.
    pub before: &'a ServerConfig,
    /// As it is.
    pub after: &'a ServerConfig,
    /// What that means for the connection that there may be.
    pub effect: ChangeEffect,
}

/// What a change means for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeEffect {
    /// It was made for something else, and has to be made anew.
    Reconnect,
    /// It stays, and only what is offered changes.
    KeepConnection,
}

impl ConfigDiff<'_> {
    /// Tells whether nothing is different.
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
