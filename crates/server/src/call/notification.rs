use std::time::Duration;

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::{LoggingLevel, RawJson, RequestId, emit};

/// A notification that a handler sends while it runs.
#[derive(Clone, Debug)]
pub(crate) enum CallNotification {
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        level: LoggingLevel,
        logger: Option<String>,
        data: RawJson,
    },
    /// A request to the client needs no response any more, since the operator has answered.
    RequestCancelled {
        id: RequestId,
    },
}

/// The most urgent action that a running call has left for its exchange.
pub(crate) enum PendingAction {
    /// The caller cancelled the call and wants no response.
    Cancelled,
    /// The handler sends a notification.
    Notification(CallNotification),
    /// The handler releases its response stream for a while.
    ReleaseStream(Duration),
    /// The handler waits for the responses to input requests that were not sent to the caller yet.
    InputRequests,
}

impl CallNotification {
    /// Returns how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Progress { message, .. } => message.as_deref().map_or(0, str::len),
            Self::Log { logger, data, .. } => logger.as_deref().map_or(0, str::len) + data.as_str().len(),
            Self::RequestCancelled { id } => id.to_raw().as_str().len(),
        }
    }

    /// Writes the notification for a caller, if the caller wants it.
    pub(crate) fn render(
        &self,
        dialect: &Dialect,
        token: Option<&RawJson>,
        level: Option<LoggingLevel>,
    ) -> Option<String> {
        match self {
            Self::Progress { progress, total, message } => {
                let token = token?;
                Some(emit::notification("notifications/progress", |w| {
                    w.open_object();
                    w.plain_key("progressToken");
                    w.raw(token);
                    w.plain_key("progress");
                    w.number(*progress);
                    if let Some(total) = total {
                        w.plain_key("total");
                        w.number(*total);
                    }
                    if let Some(message) = message.as_deref().filter(|_| dialect.progress_message) {
                        w.plain_key("message");
                        w.string(message);
                    }
                    w.close_object();
                }))
            }
            Self::Log { level: severity, logger, data } => {
                level.filter(|wanted| severity >= wanted)?;
                Some(emit::notification("notifications/message", |w| {
                    w.open_object();
                    w.plain_key("level");
                    w.string(severity.as_str());
                    if let Some(logger) = logger {
                        w.plain_key("logger");
                        w.string(logger);
                    }
                    w.plain_key("data");
                    w.raw(data);
                    w.close_object();
                }))
            }
            Self::RequestCancelled { id } => Some(emit::notification("notifications/cancelled", |w| {
                w.open_object();
                w.member("requestId", &id.to_raw());
                w.plain_key("reason");
                w.string("answered by the operator of the hub");
                w.close_object();
            })),
        }
    }
}
