use clap::{Arg, Command, value_parser};

use crate::{convert, debug};

/// What the store has, by the way to its commands. Who may do what, and who is who, is as sensitive as it sounds.
pub(crate) const COLLECTIONS: [&[&str]; 21] = [
    &["component"],
    &["worker"],
    &["agent"],
    &["app"],
    &["plugin"],
    &["environment"],
    &["schedule"],
    &["route"],
    &["queue"],
    &["api", "definition"],
    &["api", "deployment"],
    &["api", "domain"],
    &["cloud", "project"],
    &["profile"],
    &["account"],
    &["grant"],
    &["cloud", "token"],
    &["cloud", "certificate"],
    &["cloud", "project", "policy"],
    &["cloud", "project", "grant"],
    &["cloud", "account", "grant"],
];

/// The whole program.
pub(crate) fn command() -> Command {
    let command = Command::new("depot")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Keeps components, workers and what belongs to them.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("service")
                .long("service")
                .env("DEPOT_SERVICE")
                .default_value("http://127.0.0.1:9881")
                .help("Where the store is"),
        )
        .arg(Arg::new("profile").long("profile").global(true).help("Whose rights to use"))
        .arg(Arg::new("config_dir").long("config-dir").global(true).help("Where the settings are"))
        .arg(
            Arg::new("format")
                .long("format")
                .global(true)
                .value_parser(["table", "json"])
                .default_value("table")
                .help("How to print what there is"),
        )
        .subcommand(convert::command())
        .subcommand(debug::command())
        .subcommand(
            Command::new("store")
                .hide(true)
                .about("Runs a store")
                .arg(Arg::new("port").required(true).value_parser(value_parser!(u16))),
        );
    COLLECTIONS.iter().fold(command, |command, path| with_collection(command, path, &path.join(" ")))
}

/// Adds the commands of a collection, at the end of its path.
fn with_collection(command: Command, path: &[&'static str], title: &str) -> Command {
    let [word, below @ ..] = path else { return with_verbs(command, title) };
    if command.find_subcommand(word).is_some() {
        return command.mut_subcommand(word, |group| with_collection(group, below, title));
    }
    let group = Command::new(*word).subcommand_required(true).arg_required_else_help(true);
    command.subcommand(with_collection(group.about(format!("What there is of: {word}")), below, title))
}

fn with_verbs(command: Command, title: &str) -> Command {
    let name = || Arg::new("component_name").required(true).value_name("NAME").help("What it is called");
    let fields = || {
        Arg::new("field")
            .long("field")
            .value_name("KEY=VALUE")
            .action(clap::ArgAction::Append)
            .value_parser(key_and_value)
            .help("A property that it has; repeatable")
    };
    let verb = |verb: &'static str, does: &str| Command::new(verb).about(format!("{does} ({title})"));
    command
        .subcommand(
            verb("list", "Lists all of a kind")
                .arg(Arg::new("component_name").long("component-name").help("Only what has this name"))
                .arg(
                    Arg::new("limit")
                        .long("limit")
                        .value_parser(value_parser!(u16).range(1..=1000))
                        .help("At most so many"),
                ),
        )
        .subcommand(verb("get", "Shows one").arg(name()))
        .subcommand(verb("add", "Adds one").arg(name()).arg(fields()))
        .subcommand(verb("update", "Changes one").arg(name()).arg(fields()))
        .subcommand(verb("delete", "Deletes one").arg(name()).arg(
            Arg::new("force").long("force").action(clap::ArgAction::SetTrue).help("Even if it is in use"),
        ))
        .subcommand(
            verb("rename", "Gives another name to one").arg(name()).arg(Arg::new("new_name").required(true)),
        )
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
