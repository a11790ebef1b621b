use crate::server::ServerConfig;

/// What is different between two configurations, by the names of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference<'a> {
    /// Servers that are new, in the order of the new configuration.
    pub added: Vec<&'a ServerConfig>,
    /// Servers that are gone, in the order of the old configuration.
    pub removed: Vec<&'a ServerConfig>,
    /// Servers that are described otherwise, in the order of the new configuration.
    pub changed: Vec<Changed<'a>>,
    /// Servers that are as they were, in the order of the new configuration.
    pub same: Vec<&'a ServerConfig>,
}

/// A server that is described otherwise than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed<'a> {
    /// As it was.
    pub before: &'a ServerConfig,
    /// As it is.
    pub after: &'a ServerConfig,
    /// What that means for the connection that there may be.
    pub effect: Effect,
}

/// What a change means for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was made for something else, and has to be made anew.
    Reconnect,
    /// It stays, and only what is offered changes.
    Keep,
}

impl Difference<'_> {
    /// Tells whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// Compares two configurations; the order of servers is no difference.
pub fn difference<'a>(before: &'a [ServerConfig], after: &'a [ServerConfig]) -> Difference<'a> {
    let in_order = |server: &&ServerConfig| !after.iter().any(|other| other.name == server.name);
    let mut found = Difference { removed: before.iter().filter(in_order).collect(), ..Difference::default() };
    for after in after {
        match before.iter().find(|before| before.name == after.name) {
            None => found.added.push(after),
            Some(before) if before == after => found.same.push(after),
            Some(before) => {
                let effect = if before.connects_like(after) { Effect::Keep } else { Effect::Reconnect };
                found.changed.push(Changed { before, after, effect });
            }
        }
    }
    found
}
