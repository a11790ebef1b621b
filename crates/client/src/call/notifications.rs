use trunkline_protocol::{LoggingLevel, Notification, RawJson};

/// How far a server is with a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProgressUpdate {
    /// How much is done, in the server's own unit; it only grows.
    pub progress: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// Something that a server writes down.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LogMessage {
    /// How bad it is.
    pub level: LoggingLevel,
    /// The part of the server that says it.
    pub logger: Option<String>,
    /// What it says, any JSON value.
    pub data: RawJson,
}

impl ProgressUpdate {
    /// Reads a notification; one that makes no sense is nothing.
    pub(crate) fn read(notice: &Notification) -> Option<Self> {
        let number = |key: &str| notice.params.get(key).and_then(|raw| raw.get::<f64>().ok());
        Some(Self {
            progress: number("progress")?,
            total: number("total"),
            message: notice.params.members.text("message").map(Into::into),
        })
    }
}

impl LogMessage {
    /// Reads a notification; one that makes no sense is nothing.
    pub(crate) fn read(notice: &Notification) -> Option<Self> {
        let text = |key: &str| notice.params.members.text(key);
        Some(Self {
            level: LoggingLevel::parse(&text("level")?)?,
            logger: text("logger").map(Into::into),
            data: notice.params.get("data")?.to_owned_buffer(),
        })
    }
}
