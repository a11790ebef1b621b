use std::fmt::Write as _;

use serde_json::{Value, json};
use trunkline_hub::events::{
    ClientEvent, EventBody, EventDirection, EventWire, HubEvent, InputEvent, MessageEvent,
};
use trunkline_protocol::RawJson;

use crate::terminal::escape_line;

/// The most characters of a message that are shown.
const MAX_MESSAGE: usize = 200;

/// Describes an event on one line, escaped for a terminal.
pub(crate) fn describe_event(event: &HubEvent) -> String {
    let time = event.time.to_string();
    // The time of day is enough, to the millisecond.
    let time = time.get(11..23).unwrap_or(&time);
    format!("{time} {}\n", escape_line(&description(&event.body)))
}

/// Returns an event as a value.
pub(crate) fn event_line(event: &HubEvent) -> Value {
    serde_json::from_str(&event.to_line()).unwrap_or_else(|_| json!({ "seq": event.seq }))
}

fn description(body: &EventBody) -> String {
    match body {
        EventBody::Message(message) => describe_message(message),
        EventBody::CallStarted(call) => {
            let item = call.item.as_ref().or(call.name.as_ref()).map(|item| format!(" {item}"));
            let client = call.client_name.as_ref().or(call.client.as_ref());
            let client = client.map(|client| format!(" for {client}")).unwrap_or_default();
            format!(
                "{:<6} began: {}{} at {}{client}",
                call.call,
                call.method,
                item.unwrap_or_default(),
                call.server
            )
        }
        EventBody::CallEnded(call) => {
            let error = call.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let outcome = json!(call.outcome);
            let outcome = outcome.as_str().unwrap_or_default();
            format!("{:<6} ended: {outcome} after {} us{error}", call.call, call.micros)
        }
        EventBody::InputRequested(input) => describe_input(input, "input requested"),
        EventBody::InputAnswered(input) => describe_input(input, "input answered"),
        EventBody::ClientConnected(client) => describe_client(client, "connected"),
        EventBody::ClientGone(client) => describe_client(client, "gone"),
        EventBody::ServerState(state) => {
            let reason = state.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("server {} is {}{reason}", state.server, state.state)
        }
        EventBody::Log(log) => {
            format!("log of {}: {} {}", log.server, log.level, shortened(&log.data.to_string()))
        }
        EventBody::Stderr(stderr) => format!("stderr of {}: {}", stderr.server, shortened(&stderr.line)),
        EventBody::Dropped { count } => format!("{count} events were dropped here"),
        EventBody::CallTraced(trace) => {
            format!("{:<6} is span {} of the trace {}", trace.call, trace.span, trace.trace)
        }
        EventBody::ServerCall(call) => {
            let outcome = json!(call.outcome);
            let outcome = outcome.as_str().unwrap_or_default();
            let item = call.item.as_ref().map(|item| format!(" {item}")).unwrap_or_default();
            format!(
                "{:<6} {}{item} at {}: {outcome} after {} us",
                call.call, call.method, call.server, call.micros
            )
        }
        EventBody::ServerConnected(connection) => {
            format!("connection {} to server {} is open", connection.connection, connection.server)
        }
        EventBody::ServerGone(connection) => {
            format!("connection {} to server {} has ended", connection.connection, connection.server)
        }
        _ => "an event of a kind that this version does not know".to_owned(),
    }
}

fn describe_message(message: &MessageEvent) -> String {
    let call = message.call.as_deref().unwrap_or("-");
    let (wire, arrow) = match (message.wire, message.direction) {
        (EventWire::Client, EventDirection::Received) => ("client", "-> hub"),
        (EventWire::Client, EventDirection::Sent) => ("client", "<- hub"),
        (EventWire::Server, EventDirection::Received) => ("hub", "<- "),
        (EventWire::Server, EventDirection::Sent) => ("hub", "-> "),
    };
    let mut line = format!("{call:<6} {wire} {arrow}{}", message.server.as_deref().unwrap_or_default());
    if let Some(revision) = &message.revision {
        let _ = write!(line, " [{revision}]");
    }
    let text = message.message.as_ref().map(RawJson::as_str).or(message.message_prefix.as_deref());
    let _ = write!(line, " {}", shortened(text.unwrap_or_default()));
    line
}

fn describe_input(input: &InputEvent, what: &str) -> String {
    format!("{:<6} {what}: {} {}", input.call, input.method.as_deref().unwrap_or_default(), input.key)
}

fn describe_client(client: &ClientEvent, what: &str) -> String {
    let name = client.name.as_deref().unwrap_or("unnamed");
    format!("client {} {what}: {name} of {}", client.client, client.principal)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}… ({} bytes)", text.get(..end).unwrap_or_default(), text.len()),
        None => text.to_owned(),
    }
}
