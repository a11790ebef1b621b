use crate::node::{ConfigNode, NodeKind};
use crate::problem::ConfigProblem;
use crate::server::ServerLocation;

/// A server of a file with a definition that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidServer {
    /// Its key in the file, which may be no [`ServerName`](crate::ServerName).
    pub name: String,
    /// Whether it is enabled; `true` unless the file disables it in a readable way.
    pub enabled: bool,
    /// Whether the file marks it as required.
    pub required: bool,
    /// How it would be reached, with unexpanded variables, if that can be read.
    pub location: Option<ServerLocation>,
    /// What is wrong with it.
    pub problem: ConfigProblem,
}

impl InvalidServer {
    /// Reads as much of the table of a server as can be read.
    pub(super) fn new(name: &str, table: &ConfigNode, problem: ConfigProblem) -> Self {
        let has = |key: &str, value: bool| {
            table.get(key).is_some_and(|node| matches!(node.kind, NodeKind::Bool(read) if read == value))
        };
        Self {
            name: name.to_owned(),
            enabled: !has("enabled", false),
            required: has("required", true),
            location: None,
            problem,
        }
    }
}
