//! Whom a request, and so a session, belongs to.

use std::fmt;
use std::sync::Arc;

/// The party that a request belongs to, as far as the server has verified it.
///
/// The three kinds never equal each other, whatever a name says: `Named("anonymous")` is not `Anonymous`. The displayed
/// text is for people and does not keep them apart, so a store must not use it as a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Anyone: the server asked for no credentials.
    Anonymous,
    /// The process at the other end of our standard input and output.
    Process,
    /// A party with verified credentials, by its stable name, such as issuer and subject of its token.
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
    fn principal_named_like_another_kind_is_still_another_principal() {
        for (kind, name) in [(Principal::Anonymous, "anonymous"), (Principal::Process, "process")] {
            let impostor = Principal::Named(name.into());
            assert_eq!(kind.to_string(), impostor.to_string());
            assert_ne!(kind, impostor);
        }
    }
}
