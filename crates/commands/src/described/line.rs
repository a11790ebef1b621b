use super::argument::Argument;
use super::config::{CommandConfig, Fault};
use super::template::Template;

/// What is run.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Argv(Template),
    /// An interpreter and the text that it runs.
    Script(Vec<String>),
}

/// What runs a script unless something else is named.
const SHELL: [&str; 3] = ["sh", "-eu", "-c"];

impl Line {
    /// Reads what is run, and adds what is wrong with it.
    pub(super) fn read(
        config: &CommandConfig,
        arguments: &[Argument],
        faults: &mut Vec<Fault>,
    ) -> Option<Self> {
        match (&config.argv, &config.script) {
            (Some(items), None) => {
                if config.interpreter.is_some() {
                    faults.push(Fault::at(&["interpreter"], "only a script has one"));
                }
                let template = Template::read(items, arguments, faults);
                for (at, argument) in arguments.iter().enumerate() {
                    if template.places().all(|place| place != at) {
                        let what = format!("`{{{}}}` has no place in `argv`", argument.name);
                        faults.push(Fault::at(&["arguments", &argument.name], what));
                    }
                }
                Some(Self::Argv(template))
            }
            (None, Some(script)) => {
                let interpreter = config
                    .interpreter
                    .clone()
                    .unwrap_or_else(|| SHELL.iter().map(ToString::to_string).collect());
                if interpreter.is_empty() {
                    faults.push(Fault::at(&["interpreter"], "it names no program"));
                }
                let names: Vec<String> = arguments.iter().map(|argument| variable(&argument.name)).collect();
                for (at, name) in names.iter().enumerate() {
                    if names.iter().take(at).any(|other| other == name) {
                        faults.push(Fault::at(
                            &["arguments"],
                            format!("two arguments would be the variable {name}"),
                        ));
                    }
                }
                Some(Self::Script(interpreter.into_iter().chain([script.0.clone()]).collect()))
            }
            (None, None) => {
                faults.push(Fault::at(&[], "it has neither `argv` nor `script`"));
                None
            }
            (Some(_), Some(_)) => {
                faults.push(Fault::at(&["script"], "it has `argv` too; a command has one of both"));
                None
            }
        }
    }
}

/// Returns the variable in which a script finds an argument.
pub(super) fn variable(argument: &str) -> String {
    format!("ARG_{}", argument.to_ascii_uppercase().replace('-', "_"))
}
