//! The scenarios through `trunkline bridge`: the bridge is the OAuth client of the suite's server, and the fixture a client
//! of the bridge that opens the links which it is given.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use trunkline::Result;
use trunkline_client::Client;
use trunkline_client::protocol::model::{CallToolResult, Content};
use trunkline_client::transport::process::Command;

use super::Scenario;
use super::answers::{Answers, CONNECT_PATH};
use super::authorization::CLIENT_DOCUMENT;
use super::connect_page::open_link;

/// The name of the suite's server in the configuration of the bridge.
const SERVER: &str = "suite";

/// The tool that the bridge lists before a login.
const LOGIN_TOOL: &str = "login";

/// How often one call is repeated after a link was opened by hand.
const MAX_LINKS: usize = 3;

impl Scenario {
    /// Does what the scenario looks at, through a bridge: `bridge` is the command `trunkline`.
    ///
    /// # Errors
    /// As [`Scenario::run`], or the bridge failed.
    pub async fn run_through(&self, bridge: &Path) -> Result<()> {
        let folder = ScenarioFolder::create()?;
        let config = folder.write("trunkline.toml", &self.config(&folder)?)?;
        let command = Command::new(bridge)
            .args(["bridge", "--log-level", "info", "--revision", self.revision.as_str(), "--config"])
            .arg(config)
            .arg(SERVER)
            .env("XDG_STATE_HOME", &folder.0);
        let builder = Client::builder().input(Answers).pin(self.revision);
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        let builder = builder.on_line(move |line| lines.lock().push(line.text.to_string()));
        let run = async {
            let client = builder.connect(command).await?;
            let done = match self.name.starts_with("auth/") {
                true => log_in_and_call(&client).await,
                false => self.run_with(&client).await,
            };
            client.close().await;
            done
        };
        run.await.map_err(|error| format!("{error}\n{}", log.lock().join("\n")).into())
    }

    /// Writes the configuration of the bridge for this scenario.
    fn config(&self, folder: &ScenarioFolder) -> Result<String> {
        let text = |name: &str| -> Result<&str> {
            Ok(self
                .context
                .get(name)
                .and_then(Value::as_str)
                .ok_or_else(|| format!("the context has no `{name}`"))?)
        };
        let auth = match self.name.as_str() {
            "auth/client-credentials-basic" => json!({
                "type": "client-credentials", "client_id": text("client_id")?, "client_secret": text("client_secret")?,
            }),
            "auth/client-credentials-jwt" => json!({
                "type": "client-credentials", "client_id": text("client_id")?,
                "private_key": folder.write("client-key.pem", text("private_key_pem")?)?,
            }),
            "auth/enterprise-managed-authorization" => json!({
                "type": "enterprise", "client_id": text("client_id")?, "client_secret": text("client_secret")?,
                "token_file": folder.write("id-token", text("idp_id_token")?)?,
                "idp_token_endpoint": text("idp_token_endpoint")?, "idp_client_id": text("idp_client_id")?,
            }),
            "auth/wif-jwt-bearer" => json!({
                "type": "workload-identity", "client_id": text("client_id")?,
                "token_file": folder.write("workload-token", text("valid_jwt")?)?,
            }),
            "auth/pre-registration" => json!({
                "client_id": text("client_id")?, "client_secret": text("client_secret")?,
            }),
            _ => json!({ "client_document": CLIENT_DOCUMENT }),
        };
        let members: Vec<_> =
            auth.as_object().into_iter().flatten().map(|(key, value)| format!("{key} = {value}")).collect();
        let url = Value::from(self.url.as_str());
        Ok(format!("[servers.{SERVER}]\nurl = {url}\nauth = {{ {} }}\n", members.join(", ")))
    }
}

/// Logs in if that is all that can be done, and calls every tool.
async fn log_in_and_call(client: &Client) -> Result<()> {
    let mut tools = client.tools().await?;
    if tools.iter().all(|tool| tool.name == LOGIN_TOOL) {
        call(client, LOGIN_TOOL).await?;
        tools = client.tools().await?;
    }
    for tool in tools.iter() {
        call(client, &tool.name).await?;
    }
    Ok(())
}

/// Calls a tool, and again after each link that is its result.
async fn call(client: &Client, tool: &str) -> Result<()> {
    for _ in 0..MAX_LINKS {
        let result = client.call(tool, json!({})).await?;
        let text = text_of(&result);
        match text.split_whitespace().find(|word| word.contains(CONNECT_PATH)) {
            Some(link) => open_link(link).await?,
            None if result.is_error => return Err(text.into()),
            None => return Ok(()),
        }
        // The tool has done all that it does.
        if tool == LOGIN_TOOL {
            return Ok(());
        }
    }
    Err(format!("`{tool}` requested a login {MAX_LINKS} times").into())
}

fn text_of(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A folder for the files of one scenario, which is removed at the end.
struct ScenarioFolder(PathBuf);

impl ScenarioFolder {
    fn create() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("trunkline-bridged-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for ScenarioFolder {
    fn drop(&mut self) {
        // What is left lies in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
