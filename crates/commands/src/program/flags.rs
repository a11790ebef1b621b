use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::Program;
use crate::tree::lenient;

/// The parsed serve flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServeRequest {
    pub(super) listen: ListenMode,
    pub(super) port_file: Option<PathBuf>,
    pub(super) policy: Option<PathBuf>,
    pub(super) resource_globs: Vec<String>,
    pub(super) golem_errors: bool,
    /// The words to put before every command of the program.
    pub(super) prefix: Vec<OsString>,
}

/// Where a program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenMode {
    Stdio,
    Port(u16),
    /// Nowhere: the commands are only listed, each with the deciding rule.
    List,
}

/// The serve flags, derived from one name.
#[derive(Clone, Debug)]
pub(super) struct ServeFlags {
    serve: String,
    port: String,
    stdio: String,
    port_file: String,
    policy: String,
    resources: String,
    golem_errors: String,
    list: String,
}

impl ServeFlags {
    pub(super) fn new(name: &str) -> Self {
        Self {
            serve: name.to_owned(),
            port: format!("{name}-port"),
            stdio: format!("{name}-stdio"),
            port_file: format!("{name}-port-file"),
            policy: format!("{name}-policy"),
            resources: format!("{name}-resources"),
            golem_errors: format!("{name}-golem-errors"),
            list: format!("{name}-list"),
        }
    }

    /// Adds the flags to a program, unless it uses one of their names; such a program cannot have been served by
    /// them.
    pub(super) fn add_if_unused(&self, command: &Command) -> Option<Command> {
        let ours = self.add_to(Command::new(""));
        let taken = |ours: &Arg| {
            command
                .get_arguments()
                .any(|arg| arg.get_id() == ours.get_id() || arg.get_long() == ours.get_long())
        };
        (!ours.get_arguments().any(taken)).then(|| self.add_to(command.clone()))
    }

    /// Adds the flags to a program.
    pub(super) fn add_to(&self, command: Command) -> Command {
        let arg =
            |name: &String| Arg::new(name.clone()).long(name.clone()).help_heading("Model Context Protocol");
        command
            .arg(
                arg(&self.serve)
                    .value_name("PORT")
                    .num_args(0..=1)
                    .require_equals(true)
                    .value_parser(value_parser!(u16))
                    .help("Serve the commands as tools, on a port of this machine or on standard input"),
            )
            .arg(
                arg(&self.port)
                    .value_name("PORT")
                    .value_parser(value_parser!(u16))
                    .help("Serve the commands as tools on this port, where 0 is any"),
            )
            .arg(
                arg(&self.stdio)
                    .action(ArgAction::SetTrue)
                    .conflicts_with_all([self.serve.clone(), self.port.clone()])
                    .help("Serve the commands as tools on standard input and output"),
            )
            .arg(
                arg(&self.port_file)
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help("A file to write the address to when ready"),
            )
            .arg(
                arg(&self.policy)
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help("A file of rules, `deny cloud token *` one a line, before those of the program"),
            )
            .arg(
                arg(&self.resources)
                    .value_name("GLOB")
                    .action(ArgAction::Append)
                    .help("Offer files as resources, such as '**/golem.yaml'; repeatable"),
            )
            .arg(
                arg(&self.golem_errors)
                    .action(ArgAction::SetTrue)
                    .help("Answer calls of unknown tools by a result, as golem's server does"),
            )
            .arg(
                arg(&self.list)
                    .action(ArgAction::SetTrue)
                    .conflicts_with_all([self.serve.clone(), self.port.clone(), self.stdio.clone()])
                    .help("List the commands, their tools and the rules that show or hide them"),
            )
    }

    /// Parses the flags, if the words contain a serve flag and no command.
    ///
    /// If the words are invalid, the program itself reports the error.
    pub(super) fn parse(&self, program: &Program, words: &[OsString]) -> Option<ServeRequest> {
        let own = words.iter().take_while(|word| *word != "--");
        if !own.clone().any(|word| self.is_serve_flag(word)) {
            return None;
        }
        let words = &self.join_port(program, words);
        // Lenient, since a program that requires a command has none here.
        let mut command = self.add_to(lenient(program.command.clone()));
        let matches = command.try_get_matches_from_mut(words).ok()?;
        if matches.subcommand().is_some() {
            return None;
        }
        let listen = self.listen(&matches)?;
        Some(ServeRequest {
            listen,
            port_file: matches.get_one(&self.port_file).cloned(),
            policy: matches.get_one(&self.policy).cloned(),
            resource_globs: matches.get_many(&self.resources).into_iter().flatten().cloned().collect(),
            golem_errors: matches.get_flag(&self.golem_errors),
            prefix: self.remaining_words(words),
        })
    }

    /// Writes `--serve 8088` as `--serve=8088`. The flag takes its value only after `=`, since a word after it may be a
    /// command; a number is none, unless the program has such a command or arguments of its own without a name.
    pub(super) fn join_port(&self, program: &Program, words: &[OsString]) -> Vec<OsString> {
        let is_port = |word: &OsString| {
            let text = word.to_str().unwrap_or_default();
            text.parse::<u16>().is_ok() && program.command.find_subcommand(text).is_none()
        };
        let serve = OsString::from(format!("--{}", self.serve));
        let takes_numbers = program.command.get_positionals().next().is_some();
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let at = words.iter().take(end).position(|word| *word == serve);
        let port = at.and_then(|at| words.get(at + 1)).filter(|word| is_port(word) && !takes_numbers);
        let (Some(at), Some(port)) = (at, port) else { return words.to_vec() };
        let mut joined = serve;
        joined.push("=");
        joined.push(port);
        let mut words = words.to_vec();
        words.splice(at..at + 2, [joined]);
        words
    }

    /// Reports whether a serve flag is combined with a command, which is an error.
    pub(super) fn are_given(&self, matches: &ArgMatches) -> bool {
        self.listen(matches).is_some()
    }

    fn listen(&self, matches: &ArgMatches) -> Option<ListenMode> {
        let port = matches.get_one(&self.port).or_else(|| matches.get_one(&self.serve));
        let is_requested = matches.get_flag(&self.stdio) || matches.contains_id(&self.serve);
        let served = matches.value_source(&self.serve) == Some(clap::parser::ValueSource::CommandLine);
        if matches.get_flag(&self.list) {
            return Some(ListenMode::List);
        }
        match port {
            Some(port) => Some(ListenMode::Port(*port)),
            None => (is_requested || served).then_some(ListenMode::Stdio),
        }
    }

    fn is_serve_flag(&self, word: &OsStr) -> bool {
        let Some(word) = word.to_str().and_then(|word| word.strip_prefix("--")) else { return false };
        let name = word.split('=').next().unwrap_or_default();
        self.takes_value(name)
            || [&self.serve, &self.stdio, &self.golem_errors, &self.list].iter().any(|ours| *ours == name)
    }

    /// Reports whether a serve flag takes its value from the next word, unless it has one already.
    fn takes_value(&self, name: &str) -> bool {
        [&self.port, &self.port_file, &self.policy, &self.resources].iter().any(|ours| *ours == name)
    }

    /// Returns the words without the serve flags and the program's name.
    fn remaining_words(&self, words: &[OsString]) -> Vec<OsString> {
        let mut others = Vec::new();
        let mut rest = words.iter().skip(1);
        while let Some(word) = rest.next() {
            if !self.is_serve_flag(word) {
                others.push(word.clone());
                continue;
            }
            let text = word.to_str().unwrap_or_default();
            if self.takes_value(text.trim_start_matches("--")) {
                rest.next();
            }
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        Program::new(
            Command::new("demo")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .arg(Arg::new("profile").long("profile").global(true))
                .arg(Arg::new("must").long("must").required(true))
                .subcommand(Command::new("list"))
                .subcommand(Command::new("7")),
        )
    }

    fn read(line: &str) -> Option<ServeRequest> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        ServeFlags::new("serve").parse(&program(), &words)
    }

    #[test]
    fn serve_flags_are_parsed_in_every_spelling() {
        for (line, expected) in [
            ("demo --serve", Some(ListenMode::Stdio)),
            ("demo --serve-stdio", Some(ListenMode::Stdio)),
            ("demo --serve=8088", Some(ListenMode::Port(8088))),
            ("demo --serve --serve-port 1232", Some(ListenMode::Port(1232))),
            ("demo --serve --serve-port=0", Some(ListenMode::Port(0))),
            ("demo --serve-list", Some(ListenMode::List)),
            ("demo --serve 8088", Some(ListenMode::Port(8088))),
            ("demo --profile a --serve 0 --must=x", Some(ListenMode::Port(0))),
            ("demo --serve-port 1", Some(ListenMode::Port(1))),
            ("demo --serve 80888", None),
            ("demo --serve 7", None),
            ("demo -- --serve 8088", None),
            ("demo --serve=high", None),
            ("demo --serve list", None),
            ("demo list --serve", None),
            ("demo list", None),
            ("demo -- --serve", None),
            ("demo --serve --serve-stdio", None),
            ("demo --served", None),
        ] {
            assert_eq!(read(line).map(|request| request.listen), expected, "{line}");
        }
    }

    #[test]
    fn words_next_to_serve_flags_prefix_every_command() {
        let line = "demo --profile a --serve=1 --serve-port-file f --serve-policy=p --must=x --serve-resources *.yaml";
        let request = read(line).unwrap();
        assert_eq!(request.prefix, ["--profile", "a", "--must=x"]);
        assert_eq!(request.port_file, Some("f".into()));
        assert_eq!(request.policy, Some("p".into()));
        assert_eq!(request.resource_globs, ["*.yaml"]);
    }
}
