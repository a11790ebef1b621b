use std::sync::Arc;

use trunkline_client::protocol::error_code;
use trunkline_client::{Error, ItemList, SkippedItem, WithRaw};

use crate::connect::{CommandSession, call_failure};
use crate::exit::CliFailure;
use crate::terminal::escape_line;

/// A list of a server, if it has one.
pub(super) struct OptionalList<T>(Option<Arc<ItemList<T>>>);

impl<T> OptionalList<T> {
    /// Wraps a list. A server that did not declare the capability and does not know the method has none.
    ///
    /// # Errors
    /// The request failed, or the server returned another error.
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

    /// Wraps a list that a server may lack; any error response means that it has none.
    ///
    /// # Errors
    /// The request failed.
    pub(super) fn optional(list: Result<Arc<ItemList<T>>, Error>) -> Result<Self, CliFailure> {
        match list {
            Err(Error::ErrorResponse(_) | Error::Unsupported(_)) => Ok(Self(None)),
            list => Self::new(list, true),
        }
    }

    pub(super) fn items(&self) -> &[WithRaw<T>] {
        self.0.as_ref().map_or(&[], |list| list)
    }

    /// Prints the skipped items with the reasons.
    pub(super) fn print_left_out(&self, kind: &str, session: &CommandSession) {
        for SkippedItem { name, reason, .. } in self.0.iter().flat_map(|list| &list.skipped) {
            let (name, reason) = (escape_line(name), escape_line(reason));
            session.screen.print(&format!("skipped {kind} `{name}`: {reason}\n"));
        }
    }
}
