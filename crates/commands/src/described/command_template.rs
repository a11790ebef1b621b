use super::argument::DescribedArgument;
use super::config::{CommandConfig, CommandFault};
use super::template::ArgvTemplate;

/// What is run.
#[derive(Clone, Debug)]
pub(super) enum CommandTemplate {
    Argv(ArgvTemplate),
    /// An interpreter and the text that it runs.
    Script(Vec<String>),
}

/// What runs a script unless something else is named.
const DEFAULT_INTERPRETER: [&str; 3] = ["sh", "-eu", "-c"];

impl CommandTemplate {
    /// Reads what is run, and adds what is wrong with it.
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
                    if template.placeholders().all(|place| place != at) {
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

/// Returns the variable in which a script finds an argument.
pub(super) fn variable_name(argument: &str) -> String {
    format!("ARG_{}", argument.to_ascii_uppercase().replace('-', "_"))
}
