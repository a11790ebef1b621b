//! What servers report beside their messages: their state, logs and lines of standard error.

use trunkline_client::LogMessage;
use trunkline_config::ServerName;
use trunkline_protocol::RawJson;

use super::body::{EventBody, LogEvent, ServerStateEvent, StderrEvent};
use super::event_text::bounded;
use super::masking::masked;
use super::ring::EventAudience;
use super::stream::HubEvents;

/// The most bytes of a log message's data that are kept as JSON; longer data is kept as text, and cut.
const MAX_DATA_BYTES: usize = 4 * 1024;

impl HubEvents {
    pub(crate) fn server_state(&self, state: ServerStateEvent) {
        let state = ServerStateEvent { reason: state.reason.as_deref().map(bounded), ..state };
        self.publish(EventBody::ServerState(state), EventAudience::Operators);
    }

    pub(crate) fn log(&self, server: &ServerName, message: &LogMessage) {
        let data = LogEvent {
            server: server.to_string(),
            level: message.level.as_str().to_owned(),
            logger: message.logger.as_deref().map(bounded),
            data: log_data(&message.data),
        };
        self.publish(EventBody::Log(data), EventAudience::Operators);
    }

    pub(crate) fn stderr(&self, server: &ServerName, line: &str) {
        let event = StderrEvent { server: server.to_string(), line: bounded(line) };
        self.publish(EventBody::Stderr(event), EventAudience::Operators);
    }
}

fn log_data(data: &RawJson) -> serde_json::Value {
    let text = data.as_str();
    match text.len() <= MAX_DATA_BYTES {
        true => serde_json::from_str(&masked(text)).unwrap_or_default(),
        false => bounded(text).into(),
    }
}
