use clap::Args;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use trunkline_client::{ChangeEvent, ChangeFilter};

use super::list_snapshots::{ListDifference, ListSnapshots};
use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, call_failure, print_stdout, target_or_hub_help,
    with_session,
};
use crate::exit::{CliFailure, ExitReason};
use crate::render::one_line;
use crate::terminal::escape_line;

/// Print changes as they happen
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline watch [OPTIONS] [TARGET] [URI]...\n       trunkline watch [OPTIONS] [URI]... -- COMMAND [ARG]...",
    after_help = target_or_hub_help("Without --tools, --prompts, --resources or a URI, watches all lists.\n\n\
Examples:\n  trunkline watch http://127.0.0.1:7411/mcp time://now\n  \
trunkline watch --tools --json notes | jq .added\n  trunkline watch --count 1 notes note://7")
)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Watch the tool list
    #[arg(long)]
    tools: bool,
    /// Watch the prompt list
    #[arg(long)]
    prompts: bool,
    /// Watch the resource and template lists
    #[arg(long)]
    resources: bool,
    /// Exit after this many changes
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Prints changes until the connection ends, Ctrl-C, or `--count` is reached.
///
/// # Errors
/// The server cannot be reached, supports no change notifications, or closes the connection.
pub(crate) fn run(args: &WatchArgs) -> Result<(), CliFailure> {
    let words = args.target.parse_or_hub(&args.connect)?;
    let watch = requested_watch(args, words.rest)?;
    with_session(&args.connect, &AnswerArgs::default(), words.target, async |session| {
        watch_changes(watch, args.count, session).await
    })
}

fn requested_watch(args: &WatchArgs, uris: Vec<String>) -> Result<ChangeFilter, CliFailure> {
    if let Some(word) = uris.iter().find(|uri| !uri.contains(':')) {
        let hint = match &**word {
            list @ ("tools" | "prompts" | "resources") => format!("did you mean `--{list}`?"),
            _ => "a resource is watched by its URI, as `trunkline resources` lists it".to_owned(),
        };
        return Err(CliFailure::new(ExitReason::Usage, format!("`{word}` is not a URI")).hint(hint));
    }
    let named = args.tools || args.prompts || args.resources || !uris.is_empty();
    let lists = if named {
        ChangeFilter {
            tools: args.tools,
            prompts: args.prompts,
            resources: args.resources,
            ..ChangeFilter::default()
        }
    } else {
        ChangeFilter::all_lists()
    };
    Ok(ChangeFilter { uris, ..lists })
}

async fn watch_changes(
    watch: ChangeFilter,
    count: Option<u64>,
    session: &CommandSession,
) -> Result<(), CliFailure> {
    let mut changes = session.client.subscribe(watch.clone()).await.map_err(call_failure)?;
    // The lists are fetched after subscribing, so that no change between the two is missed.
    let mut snapshots = ListSnapshots::default();
    snapshots.refresh(&watch, session).await?;
    session.screen.print(&watching_message(&watch, changes.accepted_filter()));
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        let Some(change) = changes.next().await else {
            return Err(CliFailure::new(ExitReason::Unreachable, "the server closed the connection"));
        };
        let lines = describe_change(&change, &watch, &mut snapshots, session).await?;
        print_stdout(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        printed += 1;
    }
    Ok(())
}

/// Describes what is watched, and what the server does not support.
fn watching_message(wanted: &ChangeFilter, honoured: &ChangeFilter) -> String {
    let parts = |watch: &ChangeFilter| {
        let lists = [(watch.tools, "tools"), (watch.prompts, "prompts"), (watch.resources, "resources")];
        let mut parts: Vec<_> =
            lists.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()).collect();
        parts.extend(watch.uris.iter().map(|uri| escape_line(uri).into_owned()));
        parts
    };
    let (agreed, wanted) = (parts(honoured), parts(wanted));
    let missing: Vec<_> = wanted.into_iter().filter(|part| !agreed.contains(part)).collect();
    let missing = match missing.as_slice() {
        [] => String::new(),
        missing => format!("; the server does not support change notifications for {}", missing.join(", ")),
    };
    format!("watching {}{missing}\n", agreed.join(", "))
}

async fn describe_change(
    change: &ChangeEvent,
    watch: &ChangeFilter,
    snapshots: &mut ListSnapshots,
    session: &CommandSession,
) -> Result<Vec<String>, CliFailure> {
    let json = session.args.json;
    let list = |name: &str, difference: &ListDifference| {
        if json { line(&difference.to_json(name)) } else { format!("{name}: {difference}") }
    };
    Ok(match change {
        ChangeEvent::Tools => vec![list("tools", &snapshots.tools(session).await?)],
        ChangeEvent::Prompts => vec![list("prompts", &snapshots.prompts(session).await?)],
        ChangeEvent::Resources => vec![list("resources", &snapshots.resources(session).await?)],
        ChangeEvent::Resource(uri) if json => vec![line(&json!({ "change": "resource", "uri": uri }))],
        ChangeEvent::Resource(uri) => vec![format!("resource: {}", escape_line(uri))],
        _ => {
            let missed = if json {
                line(&json!({ "change": "missed" }))
            } else {
                "missed: the connection was interrupted; notifications may have been lost".to_owned()
            };
            // Lists can be fetched again and compared; for a resource only the reader has the previous content.
            let changed = snapshots.refresh(watch, session).await?;
            let changed = changed.iter().filter(|(_, difference)| !difference.is_empty());
            let lists = changed.map(|(name, difference)| list(name, difference));
            std::iter::once(missed).chain(lists).collect()
        }
    })
}

fn line(value: &Value) -> String {
    one_line(&value.clone().into())
}
