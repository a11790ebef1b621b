use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::{Map, Value, json};
use trunkline_commands::{DescribedCommand, Policy, PreparedCommand};
use trunkline_protocol::RawJson;
use trunkline_protocol::model::Tool;

use super::run::command_arguments;
use crate::configured_commands::ConfiguredCommands;
use crate::connect::print_stdout;
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::render::{one_line, pretty};
use crate::schema::tool_signature;
use crate::terminal::{OutputLayout, escape_line, first_line, truncate_to_width, wrap};

/// List configured commands, or show what one accepts and runs
#[derive(Debug, Args)]
#[command(after_help = "\
Without NAME, lists the commands of the config file.\n\n\
Examples:\n  \
trunkline explain\n  \
trunkline explain log\n  \
trunkline explain log count=5 words=fix")]
pub(crate) struct ExplainArgs {
    /// Name of the command, as in [commands.NAME]
    name: Option<String>,
    /// Arguments to fill in, as name=value
    #[arg(value_name = "ARGUMENT")]
    words: Vec<String>,
    /// Config file [default: the one in this folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
}

/// Lists the commands, or shows the schema of one, its command line, its limits and the rule that decides on it.
///
/// # Errors
/// The command is unknown, or the arguments are invalid.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), CliFailure> {
    let Some(name) = &args.name else { return list(args) };
    let file = ConfiguredCommands::read(args.config.as_deref())?;
    let command = file.command(name)?;
    let arguments = match args.words.as_slice() {
        [] => Map::new(),
        words => arguments(command, words)?,
    };
    let prepared = command.prepare(&arguments);
    if !args.words.is_empty() {
        prepared.map_err(|error| CliFailure::new(ExitReason::Usage, error))?;
    }
    let shown = ConfiguredCommands::read_unexpanded(args.config.as_deref())?;
    let command = shown.command(name)?;
    // Without arguments it is shown as it would run without any, if it would.
    let prepared = command.prepare(&arguments).ok();
    if args.json {
        let description = as_json(command, prepared.as_ref(), file.commands.policy());
        return print_stdout(&format!("{}\n", one_line(&RawJson::from(&description))));
    }
    print_stdout(&as_text(command, prepared.as_ref(), file.commands.policy()))
}

/// Lists all commands: each as a signature, with its description, or the rule that hides it.
fn list(args: &ExplainArgs) -> Result<(), CliFailure> {
    let shown = ConfiguredCommands::read_unexpanded(args.config.as_deref())?;
    let commands = shown.commands.commands();
    if args.json {
        let policy = shown.commands.policy();
        let all: Vec<Value> = commands
            .iter()
            .map(|command| {
                let decision = policy.decide(&[command.name()]);
                json!({
                    "name": command.name(), "description": command.description(), "inputSchema": command.schema(),
                    "allowed": decision.is_allowed(), "policy": decision.to_string(),
                })
            })
            .collect();
        return print_stdout(&format!("{}\n", json!(all)));
    }
    let Some(path) = &shown.path else {
        return Err(CliFailure::configuration("no trunkline.toml in this folder").hint("use `--config FILE`"));
    };
    if commands.is_empty() {
        print_stderr(&format!("{} has no commands\n", path.display()));
    }
    let layout = OutputLayout::stdout();
    let lines = commands.iter().map(|command| {
        let tool = Tool::new(command.name(), RawJson::from(&command.schema()));
        let rule = shown.denying_rule(command.name());
        let text = rule.map_or_else(|| command.description(), |rule| format!("hidden: {rule}"));
        let text = truncate_to_width(&first_line(&text), layout.columns.saturating_sub(4));
        format!("{}\n    {text}\n", layout.style.bold(&wrap(&tool_signature(&tool), layout.columns, 8)))
    });
    print_stdout(&lines.collect::<String>())
}

fn arguments(command: &DescribedCommand, words: &[String]) -> Result<Map<String, Value>, CliFailure> {
    let arguments = command_arguments(command, words)?;
    arguments
        .decode()
        .map_err(|error| CliFailure::new(ExitReason::Usage, format!("invalid arguments: {error}")))
}

fn as_json(command: &DescribedCommand, prepared: Option<&PreparedCommand>, policy: &Policy) -> Value {
    let decision = policy.decide(&[command.name()]);
    let limits = command.limits();
    json!({
        "name": command.name(),
        "description": command.description(),
        "inputSchema": command.schema(),
        "template": command.template(),
        "argv": prepared.map(PreparedCommand::words),
        "variables": prepared.map(|prepared| prepared.variables().iter().map(|(name, _)| name).collect::<Vec<_>>()),
        "folder": command.folder().display().to_string(),
        "environment": command.environment(),
        "annotations": annotations(command),
        "timeoutMs": limits.timeout.map(|within| within.as_millis()),
        "outputBytes": limits.stdout_bytes,
        "asks": prepared.and_then(|prepared| command.question(prepared)),
        "allowed": decision.is_allowed(),
        "policy": decision.to_string(),
    })
}

fn as_text(command: &DescribedCommand, prepared: Option<&PreparedCommand>, policy: &Policy) -> String {
    let decision = policy.decide(&[command.name()]);
    let limits = command.limits();
    let mut lines = vec![
        escape_line(command.name()).into_owned(),
        format!("  {}", escape_line(&command.description())),
        String::new(),
        format!("runs     {}", quoted(&command.template())),
        format!("in       {}", command.folder().display()),
        format!("env      {}", joined_names(&command.environment())),
        format!("limits   {:?}, {} bytes of output", limits.timeout.unwrap_or_default(), limits.stdout_bytes),
        format!("policy   {decision}"),
        format!("hints    {}", hints(command)),
    ];
    if let Some(prepared) = prepared {
        lines.push(String::new());
        lines.push(format!("would run   {}", quoted(prepared.words())));
        for (name, _) in prepared.variables() {
            lines.push(format!("env         {name}"));
        }
        lines.extend(
            command.question(prepared).map(|question| format!("would ask   {}", escape_line(&question))),
        );
    }
    lines.push(String::new());
    lines.push("arguments:".to_owned());
    lines.push(pretty(&RawJson::from(&command.schema())));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Lists names; those of variables, since their values may be secrets.
fn joined_names(names: &[&str]) -> String {
    match names {
        [] => "a minimal environment".to_owned(),
        names => format!("a minimal environment and {}", escape_line(&names.join(", "))),
    }
}

fn annotations(command: &DescribedCommand) -> Value {
    let hints = command.annotations();
    json!({
        "readOnlyHint": hints.read_only, "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent, "openWorldHint": hints.open_world,
    })
}

fn hints(command: &DescribedCommand) -> String {
    let hints = command.annotations();
    let each = [
        ("read-only", hints.read_only),
        ("destructive", hints.destructive),
        ("idempotent", hints.idempotent),
        ("open world", hints.open_world),
    ];
    let said = each.into_iter().filter_map(|(name, hint)| match hint? {
        true => Some(name.to_owned()),
        false => Some(format!("not {name}")),
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

/// Writes words such that one can see where each begins and ends.
fn quoted(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_graphic() && !"'\"\\$`*?".contains(c))
    };
    let each = words.iter().map(|word| {
        if plain(word) { word.clone() } else { format!("'{}'", escape_line(word).replace('\'', "'\\''")) }
    });
    each.collect::<Vec<_>>().join(" ")
}
