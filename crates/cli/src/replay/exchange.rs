use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde_json::Value;
use trunkline_hub::events::{
    EventBody, EventDirection, EventWire, HubEvent, MessageEvent, RecordHeader, RecordReader,
};
use trunkline_protocol::RawJson;

use super::canonical::canonical_params;
use crate::exit::CliFailure;

/// The wire whose requests and responses are taken from a record file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordedWire {
    /// Between clients and the hub.
    Clients,
    /// Between the hub and one server.
    Server(String),
}

/// A record file in memory.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) header: RecordHeader,
    pub(crate) events: Vec<HubEvent>,
}

/// A request with its response.
#[derive(Clone, Debug)]
pub(crate) struct RecordedExchange {
    pub(crate) method: String,
    /// The parameters without their volatile members.
    pub(crate) params: Value,
    pub(crate) outcome: RecordedOutcome,
    /// The revision of the response.
    pub(crate) revision: Option<String>,
}

/// What a request was answered with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecordedOutcome {
    Result(RawJson),
    Error(Value),
    /// The recording ended first, or the response was too long to be recorded.
    Missing(&'static str),
}

impl Recording {
    /// Reads a record file.
    ///
    /// # Errors
    /// The file cannot be read, or is no record file.
    pub(crate) fn read(path: &Path) -> Result<Self, CliFailure> {
        let unusable =
            |error: &dyn std::fmt::Display| CliFailure::configuration(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(|error| unusable(&error))?;
        let reader = RecordReader::new(BufReader::new(file)).map_err(|error| unusable(&error))?;
        let header = reader.header().clone();
        let events = reader.collect::<Result<_, _>>().map_err(|error| unusable(&error))?;
        Ok(Self { header, events })
    }

    /// Returns the wire of a server, or else that of the clients; without any message there, that of the only server.
    ///
    /// # Errors
    /// The file has no such server.
    pub(crate) fn wire(&self, server: Option<&str>) -> Result<RecordedWire, CliFailure> {
        let servers = self.servers();
        match server {
            Some(name) if servers.contains(&name) => Ok(RecordedWire::Server(name.to_owned())),
            Some(name) => {
                let failure =
                    CliFailure::configuration(format!("no messages of a server `{name}` are recorded"));
                Err(match servers.as_slice() {
                    [] => failure,
                    known => failure.hint(format!("recorded servers: {}", known.join(", "))),
                })
            }
            None if self.messages().any(|message| message.wire == EventWire::Client) => {
                Ok(RecordedWire::Clients)
            }
            None => Ok(match servers.as_slice() {
                [only] => RecordedWire::Server((*only).to_owned()),
                _ => RecordedWire::Clients,
            }),
        }
    }

    fn servers(&self) -> Vec<&str> {
        let mut servers: Vec<&str> =
            self.messages().filter_map(|message| message.server.as_deref()).collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }

    fn messages(&self) -> impl Iterator<Item = &MessageEvent> {
        self.events.iter().filter_map(|event| match &event.body {
            EventBody::Message(message) => Some(&**message),
            _ => None,
        })
    }

    /// Returns the requests on a wire with their responses, in the order of the requests.
    pub(crate) fn exchanges(&self, wire: &RecordedWire) -> Vec<RecordedExchange> {
        let mut exchanges = Vec::new();
        let mut open: HashMap<ExchangeKey, Vec<usize>> = HashMap::new();
        for message in self.messages().filter(|message| wire.has(message)) {
            let Some(parsed) = &message.message else {
                // Its id is not known; it can only be the response to the oldest open request of its call.
                close_unreadable(&mut exchanges, &mut open, message, wire);
                continue;
            };
            let parsed: Value = serde_json::from_str(parsed.as_str()).unwrap_or_default();
            let Some(key) = ExchangeKey::of(message, &parsed) else { continue };
            let method = parsed.get("method").and_then(Value::as_str);
            match (method, wire.is_request(message)) {
                (Some(method), true) => {
                    open.entry(key).or_default().push(exchanges.len());
                    exchanges.push(RecordedExchange {
                        method: method.to_owned(),
                        params: canonical_params(parsed.get("params")),
                        outcome: RecordedOutcome::Missing("it was not answered while it was recorded"),
                        revision: message.revision.clone(),
                    });
                }
                (None, false) => {
                    let at = open.get_mut(&key).filter(|open| !open.is_empty()).map(|open| open.remove(0));
                    if let Some(exchange) = at.and_then(|at| exchanges.get_mut(at)) {
                        exchange.outcome = outcome_of(&parsed);
                    }
                }
                _ => {}
            }
        }
        exchanges
    }
}

impl RecordedWire {
    fn has(&self, message: &MessageEvent) -> bool {
        match self {
            Self::Clients => message.wire == EventWire::Client,
            Self::Server(name) => message.wire == EventWire::Server && message.server.as_ref() == Some(name),
        }
    }

    /// Reports whether a message goes from the client to the server.
    fn is_request(&self, message: &MessageEvent) -> bool {
        match self {
            Self::Clients => message.direction == EventDirection::Received,
            Self::Server(_) => message.direction == EventDirection::Sent,
        }
    }
}

/// What a response has in common with its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ExchangeKey {
    client: Option<String>,
    connection: Option<u64>,
    call: Option<String>,
    id: String,
}

impl ExchangeKey {
    fn of(message: &MessageEvent, parsed: &Value) -> Option<Self> {
        let id = parsed.get("id").filter(|id| !id.is_null())?.to_string();
        let (client, call) = (message.client.clone(), message.call.clone());
        Some(Self { client, connection: message.connection, call, id })
    }
}

fn outcome_of(parsed: &Value) -> RecordedOutcome {
    match (parsed.get("result"), parsed.get("error")) {
        (Some(result), _) => RecordedOutcome::Result(RawJson::from(result.clone())),
        (None, Some(error)) => RecordedOutcome::Error(error.clone()),
        (None, None) => RecordedOutcome::Missing("its response is malformed"),
    }
}

fn close_unreadable(
    exchanges: &mut [RecordedExchange],
    open: &mut HashMap<ExchangeKey, Vec<usize>>,
    message: &MessageEvent,
    wire: &RecordedWire,
) {
    if wire.is_request(message) || message.call.is_none() {
        return;
    }
    let of_call = open.iter_mut().find(|(key, open)| key.call == message.call && !open.is_empty());
    let at = of_call.map(|(_, open)| open.remove(0));
    if let Some(exchange) = at.and_then(|at| exchanges.get_mut(at)) {
        exchange.outcome = RecordedOutcome::Missing("its response is too long to be recorded");
    }
}
