use std::ffi::OsString;

use clap::Command;
use serde_json::{Map, Value};
use trunkline_commands::{ArgvError, CommandTree, LeafCommand};

pub(crate) fn tree(command: Command) -> CommandTree {
    CommandTree::from_command(command).unwrap()
}

pub(crate) fn leaf<'t>(tree: &'t CommandTree, name: &str) -> &'t LeafCommand {
    let found = tree.leaves().iter().find(|leaf| leaf.name() == name);
    found.unwrap_or_else(|| panic!("no tool {name} among {:?}", names(tree)))
}

pub(crate) fn names(tree: &CommandTree) -> Vec<&str> {
    tree.leaves().iter().map(LeafCommand::name).collect()
}

pub(crate) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn argv(tree: &CommandTree, name: &str, arguments: &Value) -> Result<Vec<OsString>, ArgvError> {
    tree.argv(leaf(tree, name), &object(arguments))
}

/// Writes the words of a line with a mark between them, or why there is none.
pub(crate) fn line(tree: &CommandTree, name: &str, arguments: &Value) -> String {
    match argv(tree, name, arguments) {
        Ok(words) => words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join("|"),
        Err(error) => format!("{error}").lines().next().unwrap().to_owned(),
    }
}
