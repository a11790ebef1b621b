//! What the room promises, over files as the clients write them.
#![cfg(unix)]

#[cfg(test)]
mod dialects;
#[cfg(test)]
mod document;
#[cfg(test)]
mod edits;
#[cfg(test)]
mod files;
#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod preserved;
#[cfg(test)]
mod sections;
#[cfg(test)]
mod support;
#[cfg(test)]
mod toml;
