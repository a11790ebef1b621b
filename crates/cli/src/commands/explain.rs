use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::{Map, Value, json};
use trunkline_commands::{Described, Policy, Prepared};
use trunkline_protocol::Raw;

use crate::connect::{print, read_input};
use crate::described::FromFile;
use crate::exit::{Exit, Failure};
use crate::render::{one_line, pretty};
use crate::schema::{Shape, read_arguments};
use crate::terminal::visible_line;

/// Show what a described command takes, runs and may do
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:\n  \
trunkline explain log\n  \
trunkline explain log count=5 words=fix")]
pub(crate) struct ExplainArgs {
    /// The command, the name of a table [commands.NAME]
    name: String,
    /// Arguments to show the command line with, as name=value
    #[arg(value_name = "ARGUMENT")]
    words: Vec<String>,
    /// The file that describes it, else that of this folder
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print JSON, on one line
    #[arg(long)]
    json: bool,
}

/// Shows the schema of a command, its command line, its limits and the rule that decides on it.
///
/// # Errors
/// There is no such command, or the arguments do not fit.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let file = FromFile::read(args.config.as_deref())?;
    let command = file.command(&args.name)?;
    let arguments = match args.words.as_slice() {
        [] => Map::new(),
        words => arguments(command, words)?,
    };
    let prepared = command.prepare(&arguments);
    if !args.words.is_empty() {
        prepared.map_err(|error| Failure::new(Exit::Usage, error))?;
    }
    let shown = FromFile::read_shown(args.config.as_deref())?;
    let command = shown.command(&args.name)?;
    // Without arguments it is shown as it would run without any, if it would.
    let prepared = command.prepare(&arguments).ok();
    if args.json {
        let told = as_json(command, prepared.as_ref(), file.commands.policy());
        return print(&format!("{}\n", one_line(&Raw::from(&told))));
    }
    print(&as_text(command, prepared.as_ref(), file.commands.policy()))
}

fn arguments(command: &Described, words: &[String]) -> Result<Map<String, Value>, Failure> {
    let shape = Shape::read(&Raw::from(&command.schema()));
    let arguments = read_arguments(words, None, &shape, &mut read_input)?;
    arguments.decode().map_err(|error| Failure::new(Exit::Usage, format!("the arguments: {error}")))
}

fn as_json(command: &Described, prepared: Option<&Prepared>, policy: &Policy) -> Value {
    let decision = policy.decide(&[command.name()]);
    let limits = command.limits();
    json!({
        "name": command.name(),
        "description": command.description(),
        "inputSchema": command.schema(),
        "template": command.template(),
        "argv": prepared.map(Prepared::words),
        "variables": prepared.map(|prepared| prepared.variables().iter().map(|(name, _)| name).collect::<Vec<_>>()),
        "folder": command.folder().display().to_string(),
        "environment": command.environment(),
        "annotations": annotations(command),
        "timeoutMs": limits.within.map(|within| within.as_millis()),
        "outputBytes": limits.stdout_bytes,
        "asks": prepared.and_then(|prepared| command.question(prepared)),
        "allowed": decision.is_allowed(),
        "policy": decision.to_string(),
    })
}

fn as_text(command: &Described, prepared: Option<&Prepared>, policy: &Policy) -> String {
    let decision = policy.decide(&[command.name()]);
    let limits = command.limits();
    let mut lines = vec![
        visible_line(command.name()).into_owned(),
        format!("  {}", visible_line(&command.description())),
        String::new(),
        format!("runs     {}", quoted(&command.template())),
        format!("in       {}", command.folder().display()),
        format!("with     {}", listed(&command.environment())),
        format!(
            "within   {:?}, at most {} bytes of output",
            limits.within.unwrap_or_default(),
            limits.stdout_bytes
        ),
        format!("policy   {decision}"),
        format!("hints    {}", hints(command)),
    ];
    if let Some(prepared) = prepared {
        lines.push(String::new());
        lines.push(format!("would run   {}", quoted(prepared.words())));
        for (name, _) in prepared.variables() {
            lines.push(format!("with        {name}"));
        }
        lines.extend(
            command.question(prepared).map(|question| format!("would ask   {}", visible_line(&question))),
        );
    }
    lines.push(String::new());
    lines.push("arguments:".to_owned());
    lines.push(pretty(&Raw::from(&command.schema())));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Lists names; those of variables, since their values may be secrets.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "a minimal environment".to_owned(),
        names => format!("a minimal environment and {}", visible_line(&names.join(", "))),
    }
}

fn annotations(command: &Described) -> Value {
    let hints = command.annotations();
    json!({
        "readOnlyHint": hints.read_only, "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent, "openWorldHint": hints.open_world,
    })
}

fn hints(command: &Described) -> String {
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
        if plain(word) { word.clone() } else { format!("'{}'", visible_line(word).replace('\'', "'\\''")) }
    });
    each.collect::<Vec<_>>().join(" ")
}
