//! A tool that returns everything it knows of its caller.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trunkline_server::{Context, Json, Secret, Tool, ToolError};

use crate::service::{VARIABLE, variable};

#[derive(Deserialize, schemars::JsonSchema)]
struct LookArguments {
    handle: Option<String>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct SeenCaller {
    has_session: bool,
    client: Option<String>,
    revision: String,
    sampling: bool,
    content_types: Vec<String>,
    variable: bool,
    hidden: bool,
    roots: Option<Vec<String>>,
    primary: Option<String>,
    within: Option<bool>,
    outside: Option<bool>,
    handle: String,
    count: u32,
    caller: Value,
}

pub(crate) fn look() -> Tool {
    Tool::new("look").run(
        async |cx: Context, LookArguments { handle }: LookArguments| -> Result<_, ToolError> {
            let roots = cx.roots().await.ok();
            let state = cx.state::<u32>(handle.as_deref())?;
            let count = state.update(|count| {
                *count += 1;
                *count
            });
            Ok(Json(SeenCaller {
                has_session: cx.session_id().is_some(),
                client: cx.client().map(|client| client.name),
                revision: cx.revision().to_string(),
                sampling: cx.capabilities().sampling(),
                content_types: cx.content_types().iter().map(ToString::to_string).collect(),
                variable: cx.env(VARIABLE) == Some(Secret::new(variable())),
                hidden: cx.env("HOME").is_none(),
                roots: roots.map(|roots| roots.into_iter().map(|root| root.uri).collect()),
                primary: cx.primary_root().await.ok().flatten().map(|root| root.uri),
                within: cx.in_roots("/usr/trunkline/../new-file").await.ok(),
                outside: cx.in_roots("/usr/../etc/passwd").await.ok(),
                handle: state.handle(),
                count,
                caller: serde_json::to_value(cx.caller()).unwrap_or_default(),
            }))
        },
    )
}
