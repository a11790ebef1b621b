//! The principal of a request or a session.

use std::fmt;
use std::sync::Arc;

/// The verified identity of a request's sender.
///
/// The three kinds never equal each other, whatever the name: `Named("anonymous")` is not `Anonymous`. The displayed
/// text is for users and does not distinguish them, so a store must not use it as a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Unauthenticated: the server requires no credentials.
    Anonymous,
    /// The process at the other end of standard input and output.
    Process,
    /// A client with verified credentials, by its stable name, such as issuer and subject of its token.
    Named(Arc<str>),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "anonymous",
            Self::Process => "process",
            Self::Named(name) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_named_like_another_kind_is_not_equal_to_it() {
        for (kind, name) in [(Principal::Anonymous, "anonymous"), (Principal::Process, "process")] {
            let impostor = Principal::Named(name.into());
            assert_eq!(kind.to_string(), impostor.to_string());
            assert_ne!(kind, impostor);
        }
    }
}
