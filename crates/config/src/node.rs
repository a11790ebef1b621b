use std::ops::Range;

/// A value of a configuration with its position, in either format.
#[derive(Clone, Debug)]
pub(crate) struct ConfigNode {
    /// The byte range in the text. An implicit table has the range of its name.
    pub(crate) span: Range<usize>,
    pub(crate) kind: NodeKind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Array(Vec<ConfigNode>),
    Table(Vec<TableEntry>),
}

/// A member of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableEntry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: ConfigNode,
}

impl ConfigNode {
    /// Returns the members, if this is a table.
    pub(crate) fn entries(&self) -> Option<&[TableEntry]> {
        match &self.kind {
            NodeKind::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns a member of a table.
    pub(crate) fn entry(&self, key: &str) -> Option<&TableEntry> {
        self.entries()?.iter().find(|entry| entry.key == key)
    }

    /// Returns the value of a member of a table.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Follows a path of keys; numbers are indices of arrays.
    pub(crate) fn at<K: AsRef<str>>(&self, path: &[K]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| match &node.kind {
            NodeKind::Array(elements) => elements.get(key.as_ref().parse::<usize>().ok()?),
            _ => node.get(key.as_ref()),
        })
    }

    /// Returns the text, if this is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Reports whether this is null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, NodeKind::Null)
    }

    /// Returns the name of the type, for messages.
    pub(crate) fn kind_name(&self) -> &'static str {
        match &self.kind {
            NodeKind::Null => "null",
            NodeKind::Bool(_) => "true or false",
            NodeKind::Integer(_) | NodeKind::Float(_) => "a number",
            NodeKind::Text(_) => "a string",
            NodeKind::Array(_) => "a list",
            NodeKind::Table(_) => "a table",
        }
    }
}

/// Compares values and their order, but not their positions.
impl PartialEq for ConfigNode {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (NodeKind::Null, NodeKind::Null) => true,
            (NodeKind::Bool(a), NodeKind::Bool(b)) => a == b,
            (NodeKind::Integer(a), NodeKind::Integer(b)) => a == b,
            // Two values that are no numbers are the same value all the same.
            (NodeKind::Float(a), NodeKind::Float(b)) => a.to_bits() == b.to_bits(),
            (NodeKind::Text(a), NodeKind::Text(b)) => a == b,
            (NodeKind::Array(a), NodeKind::Array(b)) => a == b,
            (NodeKind::Table(a), NodeKind::Table(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && a.value == b.value)
            }
            _ => false,
        }
    }
}
