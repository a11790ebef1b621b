//! The clients that a person has: their servers are taken over, and the hub is put into them.

pub(crate) mod import;
pub(crate) mod install;
mod ourselves;
mod take;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use trunkline_config::find::{Client, Places};

use crate::exit::{Exit, Failure};

/// Reads the name of a client, and lets shells complete it.
fn client_parser() -> impl TypedValueParser<Value = Client> {
    let names = PossibleValuesParser::new(Client::ALL.map(Client::as_str));
    names.try_map(|name| Client::parse(&name).ok_or("there is no such client"))
}

/// Returns where the files of this person are.
fn places() -> Result<Places, Failure> {
    Places::of_process().ok_or_else(|| {
        Failure::new(Exit::Configuration, "it is not known where your home folder is").hint("set HOME")
    })
}
