//! What a handler knows of its caller: roots, variables, capabilities and revision, the same over every transport.
//!
//! `GITHUB_TOKEN=… cargo run --example workspace_analyzer` serves it over standard input and output.

use trunkline::prelude::*;
use trunkline::{EnvPolicy, HostOptions, Secret};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Analysis {
    /// What to look for.
    analysis_type: String,
    /// Whether to look closely.
    #[serde(default)]
    deep: bool,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Report {
    analysis_type: String,
    deep_analysis: bool,
    primary_workspace: Option<String>,
    all_workspaces: Vec<String>,
    has_openai_access: bool,
    has_github_access: bool,
    supports_sampling: bool,
    content_types: Vec<String>,
    protocol_version: String,
}

async fn analyze(cx: Context, analysis: Analysis) -> Json<Report> {
    // A client without roots is nothing unusual: it simply has no workspaces.
    let roots = cx.roots().await.unwrap_or_default();
    let all_workspaces: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
    let has = |value: Option<Secret>| value.is_some_and(|value| !value.expose().is_empty());
    Json(Report {
        analysis_type: analysis.analysis_type,
        deep_analysis: analysis.deep,
        primary_workspace: all_workspaces.first().cloned(),
        all_workspaces,
        has_openai_access: has(cx.env("OPENAI_API_KEY")),
        has_github_access: has(cx.env("GITHUB_TOKEN")),
        supports_sampling: cx.capabilities().sampling(),
        content_types: cx.content_types().iter().map(ToString::to_string).collect(),
        protocol_version: cx.revision().to_string(),
    })
}

/// Makes the server.
pub(crate) fn server() -> Server {
    let description = "Says what is known of the workspace and of who asks.";
    Server::new("workspace").with(Tool::new("workspace_analyzer").description(description).run(analyze))
}

/// Names the variables that it may see.
pub(crate) fn options() -> HostOptions {
    let names = vec!["OPENAI_API_KEY".to_owned(), "GITHUB_TOKEN".to_owned()];
    let env = EnvPolicy { from_process: names.clone(), from_headers: names };
    HostOptions { env, ..HostOptions::default() }
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(stdio().serve(server().host(options())?).await?)
}
