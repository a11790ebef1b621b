use schemars::JsonSchema;
use serde::Deserialize;
use trunkline_server::Tool;

#[derive(Deserialize, JsonSchema)]
struct EchoInput {
    /// The message to return.
    message: String,
}

pub(super) fn parts() -> Tool {
    Tool::new("echo")
        .title("Echo")
        .description("Returns the message.")
        .read_only()
        .open_world(false)
        .run(|echo: EchoInput| async move { echo.message })
}
