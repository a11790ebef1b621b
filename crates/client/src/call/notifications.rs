use trunkline_protocol::{LoggingLevel, Notification, RawJson};

/// The progress of a call.
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

/// A log message of a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LogMessage {
    /// The severity.
    pub level: LoggingLevel,
    /// The part of the server that wrote it.
    pub logger: Option<String>,
    /// The message, any JSON value.
    pub data: RawJson,
}

impl ProgressUpdate {
    /// Parses a notification; `None` if it is malformed.
    pub(crate) fn read(notification: &Notification) -> Option<Self> {
        let number = |key: &str| notification.params.get(key).and_then(|raw| raw.get::<f64>().ok());
        Some(Self {
            progress: number("progress")?,
            total: number("total"),
            message: notification.params.members.text("message").map(Into::into),
        })
    }
}

impl LogMessage {
    /// Parses a notification; `None` if it is malformed.
    pub(crate) fn read(notification: &Notification) -> Option<Self> {
        let text = |key: &str| notification.params.members.text(key);
        Some(Self {
            level: LoggingLevel::parse(&text("level")?)?,
            logger: text("logger").map(Into::into),
            data: notification.params.get("data")?.to_owned_buffer(),
        })
    }
}
