use std::io::IsTerminal as _;

use clap::{Args, CommandFactory as _};

use crate::args::Cli;
use crate::connect::print_stdout;
use crate::exit::{self, CliFailure, ExitReason};
use crate::schema::did_you_mean;
use crate::terminal::{fit_lines, terminal_columns};

/// Print help on a command or topic
#[derive(Debug, Args)]
#[command(after_help = "Topics: hub, targets, arguments, answers, exit-codes.")]
pub(crate) struct HelpArgs {
    /// Command or topic
    topic: Option<String>,
}

/// The pages, by their topics.
const HELP_TOPICS: &[(&str, &str)] = &[
    ("hub", include_str!("help/hub.txt")),
    ("targets", include_str!("help/targets.txt")),
    ("arguments", include_str!("help/arguments.txt")),
    ("answers", include_str!("help/answers.txt")),
    ("exit-codes", exit::EXIT_CODES),
];

/// Prints help.
///
/// # Errors
/// There is neither a command nor a topic of that name.
pub(crate) fn run(args: &HelpArgs) -> Result<(), CliFailure> {
    let mut cli = Cli::command();
    cli.build();
    let Some(topic) = args.topic.as_deref() else { return print_page(&cli.render_help().to_string()) };
    if let Some((_, page)) = HELP_TOPICS.iter().find(|(name, _)| *name == topic) {
        return print_page(&format!("{}\n", page.trim_end()));
    }
    match cli.find_subcommand_mut(topic) {
        Some(command) => print_page(&command.render_help().to_string()),
        None => {
            let commands = cli.get_subcommands().map(clap::Command::get_name);
            let names = commands.chain(HELP_TOPICS.iter().map(|(name, _)| *name));
            let failure = CliFailure::new(ExitReason::Usage, format!("no help on `{topic}`"));
            Err(failure.hint(
                did_you_mean(topic, names)
                    .unwrap_or_else(|| "`trunkline help` lists the commands".to_owned()),
            ))
        }
    }
}

/// Prints a page, at a terminal with lines that fit it.
fn print_page(page: &str) -> Result<(), CliFailure> {
    if std::io::stdout().is_terminal() {
        return print_stdout(&fit_lines(page, terminal_columns()));
    }
    print_stdout(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_fit_a_terminal_of_80_columns_and_are_all_named() {
        let mut named = HelpArgs::augment_args(clap::Command::new("help")).render_help().to_string();
        named.retain(|c| c != '\n');
        for (name, page) in HELP_TOPICS {
            assert!(named.contains(name), "{name}: {named}");
            for line in page.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }

    #[test]
    fn nearly_correct_topic_is_suggested() {
        let failure = run(&HelpArgs { topic: Some("target".to_owned()) }).unwrap_err();
        assert!(failure.to_string().contains("did you mean `targets`?"), "{failure}");
    }
}
