use clap::Args;
use serde_json::json;
use trunkline_client::ServerInfo;
use trunkline_protocol::Era;
use trunkline_protocol::model::ServerCapabilities;

use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, print_stdout, target_or_hub_help, with_session,
};
use crate::exit::CliFailure;
use crate::render::one_line;
use crate::terminal::{OutputLayout, escape_line, escape_text, pad};

/// Show a server's identity and capabilities
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline info [OPTIONS] [TARGET]\n       trunkline info [OPTIONS] -- COMMAND [ARG]...",
    after_help = target_or_hub_help("Examples:\n  trunkline info https://example.com/mcp\n  trunkline info --era legacy -- ./server")
)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Prints the identity and capabilities of a server.
///
/// # Errors
/// The server cannot be reached.
pub(crate) fn run(args: &InfoArgs) -> Result<(), CliFailure> {
    let words = args.target.parse_or_hub(&args.connect)?;
    words.expect_end()?;
    with_session(&args.connect, &AnswerArgs::default(), words.target, async |session| print_info(session))
}

fn print_info(session: &CommandSession) -> Result<(), CliFailure> {
    let server = session.client.server();
    if session.args.json {
        return print_stdout(&format!("{}\n", one_line(&as_json(&server).into())));
    }
    print_stdout(&as_text(&server, session.layout))
}

fn as_text(server: &ServerInfo, layout: OutputLayout) -> String {
    let mut text = String::new();
    let mut line = |what: &str, words: &str| {
        let mut lines = words.lines();
        let first = lines.next().unwrap_or_default();
        text.push_str(&format!("{} {first}\n", layout.style.bold(&pad(what, 13))));
        lines.for_each(|more| text.push_str(&format!("{}\n", format!("{} {more}", pad("", 13)).trim_end())));
    };
    if let Some(identity) = &server.identity {
        let title = identity.title.as_deref().filter(|title| *title != identity.name);
        let title = title.map(|title| format!(" ({})", escape_line(title))).unwrap_or_default();
        line("server", &format!("{} {}{title}", escape_line(&identity.name), escape_line(&identity.version)));
        for (what, words) in [("description", &identity.description), ("website", &identity.website_url)] {
            if let Some(words) = words {
                line(what, &escape_text(words));
            }
        }
    }
    line("revision", &format!("{} ({})", server.revision, era_name(server)));
    line("transport", server.transport);
    line("capabilities", &capability_summary(&server.capabilities));
    for attempt in &server.attempts {
        line("tried", &format!("{}: {}", escape_line(&attempt.action), escape_line(&attempt.outcome)));
    }
    if let Some(instructions) = &server.instructions {
        line("instructions", &escape_text(instructions));
    }
    text
}

fn as_json(server: &ServerInfo) -> serde_json::Value {
    let identity = server.identity.as_ref();
    json!({
        "name": identity.map(|identity| &identity.name),
        "version": identity.map(|identity| &identity.version),
        "title": identity.map(|identity| &identity.title),
        "description": identity.map(|identity| &identity.description),
        "websiteUrl": identity.map(|identity| &identity.website_url),
        "protocolVersion": server.revision.as_str(),
        "era": era_name(server),
        "transport": server.transport,
        "capabilities": capabilities(&server.capabilities),
        "instructions": server.instructions,
        "attempts": server.attempts.iter()
            .map(|attempt| json!({ "what": attempt.action, "outcome": attempt.outcome }))
            .collect::<Vec<_>>(),
    })
}

/// Names the era of the connection.
pub(crate) fn era_name(server: &ServerInfo) -> &'static str {
    match server.revision.era() {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

/// Writes the capabilities as the newest revision does.
fn capabilities(capabilities: &ServerCapabilities) -> serde_json::Value {
    let mut writer = trunkline_protocol::JsonWriter::with_capacity(128);
    capabilities.write(trunkline_protocol::codec::Dialect::NEWEST, &mut writer);
    writer.into_raw().get().unwrap_or_default()
}

/// Summarizes the capabilities of a server.
pub(crate) fn capability_summary(capabilities: &ServerCapabilities) -> String {
    let words_of = |name: &str, changes: bool, content: bool| {
        let flags = [(changes, "listChanged"), (content, "subscribe")];
        let flags: Vec<_> = flags.iter().filter(|(is, _)| *is).map(|(_, words)| *words).collect();
        if flags.is_empty() { name.to_owned() } else { format!("{name} ({})", flags.join(", ")) }
    };
    let mut words = Vec::new();
    words.extend(capabilities.tools.map(|tools| words_of("tools", tools.list_changed, false)));
    words.extend(capabilities.prompts.map(|prompts| words_of("prompts", prompts.list_changed, false)));
    words.extend(
        capabilities
            .resources
            .map(|resources| words_of("resources", resources.list_changed, resources.subscribe)),
    );
    if capabilities.completions {
        words.push("completions".to_owned());
    }
    if capabilities.logging {
        words.push("logging".to_owned());
    }
    let extensions = capabilities.extensions.as_ref().and_then(|raw| raw.members().ok()).unwrap_or_default();
    words.extend(extensions.iter().map(|(name, _)| escape_line(name).into_owned()));
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
