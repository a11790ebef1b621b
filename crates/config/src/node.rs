use std::ops::Range;

/// A value of a configuration with its place, whatever language the file is written in.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where it stands in the text, in bytes. A table that nothing opens stands where its name does.
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A member of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node,
}

impl Node {
    /// Returns the members, if this is a table.
    pub(crate) fn entries(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns a member of a table.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries()?.iter().find(|entry| entry.key == key)
    }

    /// Returns the value of a member of a table.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Follows a path of keys, numbers standing for the elements of arrays.
    pub(crate) fn at<K: AsRef<str>>(&self, path: &[K]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| match &node.kind {
            Kind::Array(elements) => elements.get(key.as_ref().parse::<usize>().ok()?),
            _ => node.get(key.as_ref()),
        })
    }

    /// Returns the text, if this is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Says in a word what this is, as a sentence about it needs it.
    pub(crate) fn described(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "true or false",
            Kind::Integer(_) | Kind::Float(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::Array(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }
}

/// Compares what two values say and in which order, not where they stand.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Null, Kind::Null) => true,
            (Kind::Bool(a), Kind::Bool(b)) => a == b,
            (Kind::Integer(a), Kind::Integer(b)) => a == b,
            // Two values that are no numbers are the same value all the same.
            (Kind::Float(a), Kind::Float(b)) => a.to_bits() == b.to_bits(),
            (Kind::Text(a), Kind::Text(b)) => a == b,
            (Kind::Array(a), Kind::Array(b)) => a == b,
            (Kind::Table(a), Kind::Table(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && a.value == b.value)
            }
            _ => false,
        }
    }
}
