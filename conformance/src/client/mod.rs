//! The client that the official suite runs: one function for each of its scenarios.
//!
//! The suite decides what a client does, so each function has the name of the feature that it checks. None of them
//! depends on the revision.

mod answers;
mod authorization;
mod bridged;
mod calls;
mod connect_page;
mod handshake;
mod headers;
mod questions;

use serde_json::Value;
use trunkline::Result;
use trunkline_client::Client;
use trunkline_client::protocol::Revision;

use self::answers::Answers;

/// The scenario that the suite starts the client for.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The address of the server.
    pub url: String,
    /// The scenario's name.
    pub name: String,
    /// The revision to use.
    pub revision: Revision,
    /// What else there is to know, an object.
    pub context: Value,
}

impl Scenario {
    /// Reads the scenario from the environment variables of the suite.
    ///
    /// # Errors
    /// Something is missing, or makes no sense.
    pub fn from_environment(url: String) -> Result<Self> {
        let name = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
        let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
        let revision = Revision::parse(&version).ok_or_else(|| format!("`{version}` is no revision"))?;
        let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(context) => serde_json::from_str(&context)?,
            Err(_) => Value::Null,
        };
        Ok(Self { url, name, revision, context })
    }

    /// Does what the scenario looks at.
    ///
    /// # Errors
    /// The server was not what the scenario promises, or the scenario is unknown.
    pub async fn run(&self) -> Result<()> {
        let builder = Client::builder().input(Answers).pin(self.revision);
        let builder = match self.name.starts_with("auth/") {
            true => builder.authorization(authorization::options(&self.name, &self.context)?),
            false => builder,
        };
        let client = builder.connect(self.url.as_str()).await?;
        self.run_with(&client).await?;
        client.close().await;
        Ok(())
    }

    async fn run_with(&self, client: &Client) -> Result<()> {
        match self.name.as_str() {
            name if name.starts_with("auth/") => calls::every_tool(client).await?,
            "initialize" | "request-metadata" | "json-schema-ref-no-deref" => calls::list(client).await?,
            "tools_call" => calls::add_numbers(client).await?,
            "elicitation-sep1034-client-defaults" | "sse-retry" => calls::every_tool(client).await?,
            "json-schema-2020-12-preservation" => calls::echo_schema(client).await?,
            "sep-2322-client-request-state" => questions::between_rounds(client).await?,
            "http-invalid-tool-headers" => headers::valid_tools(client).await?,
            "http-custom-headers" => headers::listed_calls(client, &self.context).await?,
            "http-standard-headers" => {
                headers::every_method(client).await?;
                handshake::by_hand(&self.url).await?;
            }
            other => return Err(format!("nobody here knows the scenario `{other}`").into()),
        }
        Ok(())
    }
}
