use std::sync::Arc;

use trunkline_client::protocol::{Era, LoggingLevel, Revision};
use trunkline_client::{Client, ClientBuilder, ClientLimits, Error, LogMessage};

use crate::answers::Answers;
use crate::leftovers::{MARK, mark};
use crate::options::Options;
use crate::report::{Checked, require};
use crate::seen::Seen;

/// A client that is connected to the server, and the notifications that it got.
#[derive(Debug)]
pub(crate) struct Peer<'o> {
    pub(crate) client: Client,
    pub(crate) answers: Answers,
    pub(crate) logs: Arc<Seen<LogMessage>>,
    pub(crate) options: &'o Options,
    /// The mark on everything that was started for it.
    pub(crate) mark: String,
}

impl<'o> Peer<'o> {
    /// Connects in the mode of the options.
    pub(crate) async fn connect(options: &'o Options, answers: Answers) -> Result<Self, Error> {
        Self::connect_at(options, answers, options.mode.pin()).await
    }

    /// Connects at a revision, or at whatever is found.
    pub(crate) async fn connect_at(
        options: &'o Options,
        answers: Answers,
        pin: Option<Revision>,
    ) -> Result<Self, Error> {
        let logs = Arc::new(Seen::default());
        let mark = mark();
        let heard = logs.clone();
        let mut builder: ClientBuilder = Client::builder()
            .input(answers.clone())
            .on_log(move |message| heard.put(message.clone()))
            .env(MARK, &mark)
            // A bridge between us and a server may have to find the era of the server first.
            .limits(ClientLimits {
                probe_timeout: 2 * ClientLimits::default().handshake_timeout,
                ..ClientLimits::default()
            })
            // Where the server of a memory keeps it; no other server looks at this.
            .env("MEMORY_FILE_PATH", options.scratch.join("memory.jsonl").to_string_lossy());
        if let Some(revision) = pin {
            builder = builder.pin(revision);
        }
        let client = builder.connect(options.target()).await?;
        Ok(Self { client, answers, logs, options, mark })
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.client.server().revision.era() == Era::Modern
    }

    /// Returns the URI of a folder for this run, which is there afterwards.
    pub(crate) fn folder(&self, name: &str) -> Checked<(std::path::PathBuf, String)> {
        let path = self.options.scratch.join(name);
        std::fs::create_dir_all(&path)?;
        let path = path.canonicalize()?;
        let uri = format!("file://{}", path.display());
        require(
            !uri.contains(['%', ' ', '#', '?']),
            "the scratch folder has a name that would need escapes",
        )?;
        Ok((path, uri))
    }

    /// Calls a tool without arguments, which must not fail, and returns its text.
    pub(crate) async fn say(&self, tool: &str) -> Checked<String> {
        self.tell(tool, serde_json::json!({})).await
    }

    /// Calls a tool, which must not fail, and returns its text.
    pub(crate) async fn tell(&self, tool: &str, arguments: serde_json::Value) -> Checked<String> {
        let result = self.client.call(tool, arguments).await?;
        require(!result.is_error, format_args!("`{tool}` failed: {}", result.text()))?;
        Ok(result.text())
    }

    /// Sets the log level, and forgets the earlier messages.
    pub(crate) async fn hear(&self, level: LoggingLevel) -> Checked {
        self.client.set_level(level).await?;
        self.logs.take();
        Ok(())
    }
}
