use trunkline_server::Server;

use super::ServeArgs;
use crate::builtin::{self, Builtin};
use crate::described::FromFile;
use crate::exit::Failure;

/// What is served: what a file describes, and built-in servers.
#[derive(Debug)]
pub(super) struct Offer {
    builtin: Vec<Builtin>,
    file: FromFile,
}

impl Offer {
    /// Reads the file, if there is one, and chooses the built-in servers.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(super) fn of(args: &ServeArgs) -> Result<Self, Failure> {
        let file = if args.no_config { FromFile::default() } else { FromFile::read(args.config.as_deref())? };
        // Who describes something wants that, and the built-in servers are there for who has nothing yet.
        let nothing = args.builtin.is_empty() && file.is_empty();
        let builtin = if nothing { Builtin::ALL.to_vec() } else { args.builtin.clone() };
        Ok(Self { builtin, file })
    }

    /// Puts all of it together into one server.
    pub(super) fn server(&self) -> Server {
        self.file.add_to(builtin::server(&self.builtin))
    }

    /// Lists what is served for a person to read.
    pub(super) fn names(&self) -> String {
        let described = self.file.names();
        match (builtin::names(&self.builtin), described.as_slice()) {
            (builtin, []) => builtin,
            (builtin, described) if builtin.is_empty() => described.join(", "),
            (builtin, described) => format!("{builtin}, {}", described.join(", ")),
        }
    }
}
