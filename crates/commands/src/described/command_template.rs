use super::argument::DescribedArgument;
use super::config::{CommandConfig, CommandFault};
use super::template::ArgvTemplate;

/// The template of a command line.
#[derive(Clone, Debug)]
pub(super) enum CommandTemplate {
    Argv(ArgvTemplate),
    /// An interpreter and its script.
    Script(Vec<String>),
}

/// The default interpreter of scripts.
const DEFAULT_INTERPRETER: [&str; 3] = ["sh", "-eu", "-c"];

impl CommandTemplate {
    /// Parses the template, and adds its faults.
    pub(super) fn parse(
        config: &CommandConfig,
        arguments: &[DescribedArgument],
        faults: &mut Vec<CommandFault>,
    ) -> Option<Self> {
        match (&config.argv, &config.script) {
            (Some(items), None) => {
                if config.interpreter.is_some() {
                    faults.push(CommandFault::new(&["interpreter"], "only a script has one"));
                }
                let template = ArgvTemplate::parse(items, arguments, faults);
                for (at, argument) in arguments.iter().enumerate() {
                    if template.placeholders().all(|placeholder| placeholder != at) {
                        let what = format!("`{{{}}}` has no place in `argv`", argument.name);
                        faults.push(CommandFault::new(&["arguments", &argument.name], what));
                    }
                }
                Some(Self::Argv(template))
            }
            (None, Some(script)) => {
                let interpreter = config
                    .interpreter
                    .clone()
                    .unwrap_or_else(|| DEFAULT_INTERPRETER.iter().map(ToString::to_string).collect());
                if interpreter.is_empty() {
                    faults.push(CommandFault::new(&["interpreter"], "it names no program"));
                }
                let names: Vec<String> =
                    arguments.iter().map(|argument| variable_name(&argument.name)).collect();
                for (at, name) in names.iter().enumerate() {
                    if names.iter().take(at).any(|other| other == name) {
                        faults.push(CommandFault::new(
                            &["arguments"],
                            format!("two arguments map to the variable {name}"),
                        ));
                    }
                }
                Some(Self::Script(interpreter.into_iter().chain([script.0.clone()]).collect()))
            }
            (None, None) => {
                faults.push(CommandFault::new(&[], "it has neither `argv` nor `script`"));
                None
            }
            (Some(_), Some(_)) => {
                faults.push(CommandFault::new(&["script"], "it has `argv` too; a command has one of both"));
                None
            }
        }
    }
}

/// Returns the environment variable of a script's argument.
pub(super) fn variable_name(argument: &str) -> String {
    format!("ARG_{}", argument.to_ascii_uppercase().replace('-', "_"))
}
