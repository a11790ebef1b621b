use std::sync::Arc;

use trunkline_client::protocol::error_code;
use trunkline_client::{Error, LeftOut, List, Received};

use crate::connect::{Session, failed};
use crate::exit::Failure;
use crate::terminal::visible_line;

/// A list of a server, if it has one.
pub(super) struct Listed<T>(Option<Arc<List<T>>>);

impl<T> Listed<T> {
    /// Takes a list. A server that never said that it has one, and does not know of it, has none; that is no failure.
    ///
    /// # Errors
    /// The server cannot be asked, or refuses.
    pub(super) fn new(list: Result<Arc<List<T>>, Error>, is_declared: bool) -> Result<Self, Failure> {
        match list {
            Ok(list) => Ok(Self(Some(list))),
            Err(Error::Refused(refused)) if refused.code == error_code::METHOD_NOT_FOUND && !is_declared => {
                Ok(Self(None))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Takes a list that a server need not have in order to have others; whatever it says instead, it has none.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) fn optional(list: Result<Arc<List<T>>, Error>) -> Result<Self, Failure> {
        match list {
            Err(Error::Refused(_) | Error::Unsupported(_)) => Ok(Self(None)),
            list => Self::new(list, true),
        }
    }

    pub(super) fn items(&self) -> &[Received<T>] {
        self.0.as_ref().map_or(&[], |list| list)
    }

    /// Says what was left out of it, and why.
    pub(super) fn tell_of_left_out(&self, kind: &str, session: &Session) {
        for LeftOut { name, reason, .. } in self.0.iter().flat_map(|list| &list.left_out) {
            let (name, reason) = (visible_line(name), visible_line(reason));
            session.screen.say(&format!("{kind} `{name}` is left out: {reason}\n"));
        }
    }
}
