use std::sync::Arc;

use trunkline_client::protocol::error_code;
use trunkline_client::{Error, ItemList, SkippedItem, WithRaw};

use crate::connect::{CommandSession, call_failure};
use crate::exit::CliFailure;
use crate::terminal::escape_line;

/// A list of a server, if it has one.
pub(super) struct OptionalList<T>(Option<Arc<ItemList<T>>>);

impl<T> OptionalList<T> {
    /// Takes a list. A server that never said that it has one, and does not know of it, has none; that is no failure.
    ///
    /// # Errors
    /// The server cannot be asked, or refuses.
    pub(super) fn new(list: Result<Arc<ItemList<T>>, Error>, is_declared: bool) -> Result<Self, CliFailure> {
        match list {
            Ok(list) => Ok(Self(Some(list))),
            Err(Error::ErrorResponse(refused))
                if refused.code == error_code::METHOD_NOT_FOUND && !is_declared =>
            {
                Ok(Self(None))
            }
            Err(error) => Err(call_failure(error)),
        }
    }

    /// Takes a list that a server need not have in order to have others; whatever it says instead, it has none.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) fn optional(list: Result<Arc<ItemList<T>>, Error>) -> Result<Self, CliFailure> {
        match list {
            Err(Error::ErrorResponse(_) | Error::Unsupported(_)) => Ok(Self(None)),
            list => Self::new(list, true),
        }
    }

    pub(super) fn items(&self) -> &[WithRaw<T>] {
        self.0.as_ref().map_or(&[], |list| list)
    }

    /// Says what was left out of it, and why.
    pub(super) fn print_left_out(&self, kind: &str, session: &CommandSession) {
        for SkippedItem { name, reason, .. } in self.0.iter().flat_map(|list| &list.skipped) {
            let (name, reason) = (escape_line(name), escape_line(reason));
            session.screen.print(&format!("skipped {kind} `{name}`: {reason}\n"));
        }
    }
}
