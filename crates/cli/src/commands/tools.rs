use clap::Args;
use trunkline_client::WithRaw;
use trunkline_protocol::model::{Tool, ToolAnnotations};

use super::optional_list::OptionalList;
use crate::admin::AdminClient;
use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, print_stdout, target_or_hub_help, unlisted_servers,
    wait_for_starting_servers, with_session,
};
use crate::exit::{CliFailure, ExitReason};
use crate::render::{array, one_line, pretty};
use crate::schema::{Vendor, did_you_mean, export, tool_signature};
use crate::terminal::{OutputLayout, escape_line, escape_text, first_line, truncate_to_width, wrap};

/// List a server's tools as signatures
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline tools [OPTIONS] [TARGET] [TOOL]...\n       trunkline tools [OPTIONS] [TOOL]... -- COMMAND [ARG]...",
    after_help = target_or_hub_help("Examples:\n  trunkline tools http://127.0.0.1:7411/mcp\n  trunkline tools -- npx -y @modelcontextprotocol/server-everything\n  trunkline tools --schema http://127.0.0.1:7411/mcp convert")
)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print full descriptions and schemas
    #[arg(long)]
    schema: bool,
    /// Print JSON for a model API: anthropic, openai or gemini
    #[arg(long, value_name = "API", value_enum, hide_possible_values = true, conflicts_with_all = ["schema", "json"])]
    format: Option<Vendor>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Lists tools.
///
/// # Errors
/// The server cannot be reached, or does not have the tools.
pub(crate) fn run(args: &ToolsArgs) -> Result<(), CliFailure> {
    let words = args.target.parse_or_hub(&args.connect)?;
    let (names, hub) = (words.rest, words.hub);
    with_session(&args.connect, &AnswerArgs::default(), words.target, async |session| {
        list(args, &names, hub.as_ref(), session).await
    })
}

async fn list(
    args: &ToolsArgs,
    names: &[String],
    hub: Option<&AdminClient>,
    session: &CommandSession,
) -> Result<(), CliFailure> {
    let declared = session.client.server().capabilities.tools.is_some();
    let mut listed = session.client.tools().await;
    let has_all = listed
        .as_ref()
        .is_ok_and(|tools| !names.is_empty() && names.iter().all(|name| has_tool(tools, name)));
    if !has_all && wait_for_starting_servers(hub, session).await {
        listed = session.client.tools().await;
    }
    let all = OptionalList::new(listed, declared)?;
    all.print_left_out("tool", session);
    let chosen = select_tools(all.items(), names, hub)?;
    let unlisted = unlisted_servers(hub);
    if let Some(note) = &unlisted {
        session.screen.print(&format!("{note}\n"));
    }
    if let Some(vendor) = args.format {
        let tools: Vec<&Tool> = chosen.iter().map(|tool| &***tool).collect();
        let (value, renamed) = export(&tools, vendor);
        for line in renamed {
            session.screen.print(&format!("{}\n", escape_line(&line)));
        }
        return print_stdout(&format!("{}\n", one_line(&value.into())));
    }
    if session.args.json {
        return print_stdout(&format!("{}\n", array(chosen.iter().map(|tool| tool.raw()))));
    }
    // Servers that are still starting may have tools.
    if chosen.is_empty() && unlisted.is_none() {
        session.screen.print("the server has no tools\n");
    }
    let show = if args.schema { show_full } else { show_short };
    print_stdout(&chosen.iter().map(|tool| show(tool, session.layout)).collect::<String>())
}

/// Reports whether there is a tool of this name.
pub(crate) fn has_tool(tools: &[WithRaw<Tool>], name: &str) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

/// Takes the tools by their names; no names are all tools.
fn select_tools<'t>(
    all: &'t [WithRaw<Tool>],
    names: &[String],
    hub: Option<&AdminClient>,
) -> Result<Vec<&'t WithRaw<Tool>>, CliFailure> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        all.iter().find(|tool| tool.name == *name).ok_or_else(|| unknown_tool(name, all, hub))
    };
    names.iter().map(find).collect()
}

/// Returns the failure for an unknown tool, with the most similar name as a hint, or the servers that may have it.
pub(crate) fn unknown_tool(name: &str, all: &[WithRaw<Tool>], hub: Option<&AdminClient>) -> CliFailure {
    let names = all.iter().map(|tool| tool.name.as_str());
    let failure = CliFailure::new(ExitReason::Usage, format!("unknown tool `{name}`"));
    match did_you_mean(name, names).or_else(|| unlisted_servers(hub)) {
        Some(hint) => failure.hint(hint),
        None => failure.hint_command("tools", "lists them"),
    }
}

fn show_short(tool: &WithRaw<Tool>, layout: OutputLayout) -> String {
    let description = tool.description.as_deref().map(first_line).filter(|line| !line.is_empty());
    let description = description
        .map(|line| format!("    {}\n", truncate_to_width(&line, layout.columns.saturating_sub(4))));
    format!("{}\n{}", signature_lines(tool, layout), description.unwrap_or_default())
}

/// Writes the signature; continuation lines are indented farther than the description.
fn signature_lines(tool: &Tool, layout: OutputLayout) -> String {
    layout.style.bold(&wrap(&tool_signature(tool), layout.columns, 8))
}

fn show_full(tool: &WithRaw<Tool>, layout: OutputLayout) -> String {
    let mut text = format!("{}\n", signature_lines(tool, layout));
    for (what, words) in [("title", &tool.title), ("description", &tool.description)] {
        if let Some(words) = words {
            text.push_str(&section(what, escape_text(words).trim_end()));
        }
    }
    if let Some(hints) = &tool.annotations {
        text.push_str(&section("hints", &hint_text(hints)));
    }
    text.push_str(&section("input schema", &pretty(&tool.input_schema)));
    if let Some(schema) = &tool.output_schema {
        text.push_str(&section("output schema", &pretty(schema)));
    }
    text.push('\n');
    text
}

/// Writes a heading with indented text below it; a single line is put next to the heading.
fn section(what: &str, words: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
    if !words.contains('\n') {
        return format!("  {what}: {words}\n");
    }
    let lines: String = words.lines().map(|line| format!("    {line}\n")).collect();
    format!("  {what}:\n{lines}")
}

fn hint_text(hints: &ToolAnnotations) -> String {
    let hints = hints.with_fallback_hints();
    let said = [
        (hints.read_only, "read-only", "not read-only"),
        (hints.destructive, "destructive", "not destructive"),
        (hints.idempotent, "idempotent", "not idempotent"),
        (hints.open_world, "open world", "closed world"),
    ];
    let words = said.iter().filter_map(|(hint, yes, no)| hint.map(|hint| if hint { *yes } else { *no }));
    words.collect::<Vec<_>>().join(", ")
}
