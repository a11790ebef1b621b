//! Tools that take a while and send messages meanwhile.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use trunkline::prelude::*;

/// How long a step takes, so that its messages visibly arrive before the result.
const STEP: Duration = Duration::from_millis(50);

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_tool_with_progress")
            .description("Reports progress when it starts, works and ends.")
            .run(report),
        Tool::new("test_tool_with_logging").description("Logs when it starts, works and ends.").run(log),
        Tool::new("test_logging_tool").description("Logs once, for callers that want it.").run(
            async |cx: Context| {
                cx.log(LoggingLevel::Info, "The logging tool runs");
                "logged"
            },
        ),
        Tool::new("test_slow")
            .description("Sleeps for as long as it is told, and can be cancelled.")
            .run(doze),
        Tool::new("test_reconnection")
            .description("Lets its caller disconnect and come back for the result.")
            .run(reconnect),
    ]
}

async fn report(cx: Context) -> &'static str {
    cx.progress(0, 100);
    sleep(STEP).await;
    cx.progress(50, 100);
    sleep(STEP).await;
    cx.progress(100, 100);
    // Some clients forget a call's progress as soon as its result is there, even if both come in one read.
    sleep(STEP).await;
    "done"
}

async fn log(cx: Context) -> &'static str {
    cx.log(LoggingLevel::Info, "Tool execution started");
    sleep(STEP).await;
    cx.log(LoggingLevel::Info, "Tool processing data");
    sleep(STEP).await;
    cx.log(LoggingLevel::Info, "Tool execution completed");
    "done"
}

#[derive(Deserialize, JsonSchema)]
struct Doze {
    /// For how long.
    milliseconds: u64,
}

async fn doze(Doze { milliseconds }: Doze) -> &'static str {
    sleep(Duration::from_millis(milliseconds)).await;
    "slept"
}

async fn reconnect(cx: Context) -> &'static str {
    cx.release_stream(STEP);
    // The result comes when the caller is gone, so that it can only be had by coming back.
    sleep(4 * STEP).await;
    "Reconnection test completed"
}
