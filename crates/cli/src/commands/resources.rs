use clap::Args;
use trunkline_protocol::model::{Resource, ResourceTemplate};

use super::optional_list::OptionalList;
use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, print_stdout, target_or_hub_help, with_session,
};
use crate::exit::CliFailure;
use crate::render::array;
use crate::terminal::{escape_line, first_line, table_keeping_first_column};

/// List a server's resources and resource templates
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline resources [OPTIONS] [TARGET]\n       trunkline resources [OPTIONS] -- COMMAND [ARG]...",
    after_help = target_or_hub_help("Examples:\n  trunkline resources https://example.com/mcp\n  trunkline resources --json -- npx -y some-server")
)]
pub(crate) struct ResourcesArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Lists resources and templates.
///
/// # Errors
/// The server cannot be reached, or has none.
pub(crate) fn run(args: &ResourcesArgs) -> Result<(), CliFailure> {
    let words = args.target.parse_or_hub(&args.connect)?;
    words.expect_end()?;
    with_session(&args.connect, &AnswerArgs::default(), words.target, async |session| list(session).await)
}

async fn list(session: &CommandSession) -> Result<(), CliFailure> {
    let declared = session.client.server().capabilities.resources.is_some();
    let resources = OptionalList::new(session.client.resources().await, declared)?;
    // A server need not have templates in order to have resources.
    let templates = OptionalList::optional(session.client.templates().await)?;
    resources.print_left_out("resource", session);
    templates.print_left_out("template", session);
    let (resources, templates) = (resources.items(), templates.items());
    if session.args.json {
        let resources = array(resources.iter().map(trunkline_client::WithRaw::raw));
        let templates = array(templates.iter().map(trunkline_client::WithRaw::raw));
        return print_stdout(&format!("{{\"resources\":{resources},\"resourceTemplates\":{templates}}}\n"));
    }
    if resources.is_empty() && templates.is_empty() {
        session.screen.print("the server has no resources\n");
    }
    let layout = session.layout;
    let rows: Vec<_> = resources.iter().map(|resource| resource_row(resource)).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text.push_str(&table_keeping_first_column(&table_header("URI"), &rows, layout.columns));
    }
    let rows: Vec<_> = templates.iter().map(|template| template_row(template)).collect();
    if !rows.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table_keeping_first_column(&table_header("TEMPLATE"), &rows, layout.columns));
    }
    print_stdout(&text)
}

fn table_header(uri: &str) -> Vec<String> {
    [uri, "NAME", "TYPE", "DESCRIPTION"].map(str::to_owned).into()
}

fn resource_row(resource: &Resource) -> Vec<String> {
    let name = resource.title.as_deref().unwrap_or(&resource.name);
    row(&resource.uri, name, resource.mime_type.as_deref(), resource.description.as_deref())
}

fn template_row(template: &ResourceTemplate) -> Vec<String> {
    let name = template.title.as_deref().unwrap_or(&template.name);
    row(&template.uri_template, name, template.mime_type.as_deref(), template.description.as_deref())
}

fn row(uri: &str, name: &str, mime_type: Option<&str>, description: Option<&str>) -> Vec<String> {
    vec![
        escape_line(uri).into_owned(),
        escape_line(name).into_owned(),
        escape_line(mime_type.unwrap_or_default()).into_owned(),
        first_line(description.unwrap_or_default()),
    ]
}
