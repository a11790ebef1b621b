//! The clients that a person has: their servers are taken over, and the hub is put into them.

pub(crate) mod import;
pub(crate) mod install;
mod ourselves;
mod take;

use trunkline_config::find::{Client, Places};

use crate::exit::{Exit, Failure};

/// Reads the name of a client.
fn parse_client(text: &str) -> Result<Client, String> {
    Client::parse(text).ok_or_else(|| {
        let names: Vec<&str> = Client::ALL.iter().map(|client| client.as_str()).collect();
        format!("write one of {}", names.join(", "))
    })
}

/// Returns where the files of this person are.
fn places() -> Result<Places, Failure> {
    Places::of_process().ok_or_else(|| {
        Failure::new(Exit::Configuration, "it is not known where your home folder is").hint("set HOME")
    })
}
