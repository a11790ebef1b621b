use serde::{Deserialize, Serialize};
use trunkline_protocol::RawJson;

/// The content of an event, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventBody {
    /// A message on a wire.
    Message(Box<MessageEvent>),
    /// A call began.
    CallStarted(CallStartEvent),
    /// The trace of a call that began, if calls are traced.
    CallTraced(Box<CallTraceEvent>),
    /// A server answered a call of the hub, or failed to.
    ServerCall(Box<ServerCallEvent>),
    /// A call ended.
    CallEnded(CallEndEvent),
    /// A server requested input from the client of a call.
    InputRequested(InputEvent),
    /// An input request was answered.
    InputAnswered(InputEvent),
    /// A client connected.
    ClientConnected(ClientEvent),
    /// A client disconnected.
    ClientGone(ClientEvent),
    /// A connection to a server was opened.
    ServerConnected(ServerConnectionEvent),
    /// A connection to a server has ended.
    ServerGone(ServerConnectionEvent),
    /// The state of a server changed.
    ServerState(ServerStateEvent),
    /// A server sent a log message.
    Log(LogEvent),
    /// A server wrote a line to its standard error.
    Stderr(StderrEvent),
    /// Events were lost, because they did not fit between two readings.
    Dropped {
        /// How many.
        count: u64,
    },
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The wire of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventWire {
    /// Between a client and the hub.
    Client,
    /// Between the hub and a server.
    Server,
}

/// The direction of a message, from the hub's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventDirection {
    /// The hub received it.
    Received,
    /// The hub sent it.
    Sent,
}

/// A message on a wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageEvent {
    /// The wire.
    pub wire: EventWire,
    /// The direction.
    pub direction: EventDirection,
    /// The call that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The client, if it has a session or a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The connection to the server: a number that no other connection of the hub has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The revision that it is written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport: `stdio`, `http`, `sse`, `websocket` or `channel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// The size of the message in bytes, before masking.
    pub bytes: u64,
    /// The JSON-RPC message, with secrets masked; absent if it is too long.
    #[serde(default, skip_serializing, deserialize_with = "buffered")]
    pub message: Option<RawJson>,
    /// The beginning of a message that is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_prefix: Option<String>,
}

/// The begin of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStartEvent {
    /// The call.
    pub call: String,
    /// The client, if it has a session or a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name that the client gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// The method.
    pub method: String,
    /// The tool or prompt as the client called it, or the URI of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The server.
    pub server: String,
    /// The name of the item at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEndEvent {
    /// The call.
    pub call: String,
    /// How it ended.
    pub outcome: CallOutcome,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// How much of that the server took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_micros: Option<u64>,
    /// The size of the parameters in bytes.
    pub bytes_in: u64,
    /// The size of the result in bytes.
    pub bytes_out: u64,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of the error, as the client got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
}

/// The place of a call in a trace, as of W3C Trace Context, with what is known of its request. Ids are hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTraceEvent {
    /// The call.
    pub call: String,
    /// The trace.
    pub trace: String,
    /// The hub's span.
    pub span: String,
    /// The client's span, if the request has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The `tracestate` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Whether the trace is recorded.
    pub sampled: bool,
    /// The id of the JSON-RPC request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The revision of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// The address of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A request of the hub to a server, at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCallEvent {
    /// The call that it belongs to.
    pub call: String,
    /// The server.
    pub server: String,
    /// The method.
    pub method: String,
    /// The name of the item at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The span of the request, if calls are traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// How it ended.
    pub outcome: CallOutcome,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// The code of the error that the server answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The kind of a failure without an answer, such as `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The negotiated revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// The host of the server, if it is reached at an address without variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The port of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A connection to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerConnectionEvent {
    /// The server.
    pub server: String,
    /// The number of the connection, as of its messages.
    pub connection: u64,
    /// The negotiated revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It has a result.
    Ok,
    /// It has a result that reports an error (`isError`).
    ToolError,
    /// It was answered with an error.
    Error,
    /// It was cancelled.
    Cancelled,
    /// Its result is a request for input.
    InputRequired,
}

/// An input request of a server, or its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputEvent {
    /// The call.
    pub call: String,
    /// The method of the input request, such as `elicitation/create`, where the hub knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Its key within the call.
    pub key: String,
    /// Who answered it, in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<InputAnswerer>,
}

/// The one that answered an input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputAnswerer {
    /// The client of the call.
    Client,
    /// An operator, in the place of the client.
    Operator,
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEvent {
    /// Its id.
    pub client: String,
    /// The name that it gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its principal.
    pub principal: String,
    /// The revision that it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Its transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStateEvent {
    /// The server.
    pub server: String,
    /// The state, as in `trunkline servers`.
    pub state: String,
    /// The reason for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The negotiated revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// A log message of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEvent {
    /// The server.
    pub server: String,
    /// The level.
    pub level: String,
    /// The logger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The data.
    pub data: serde_json::Value,
}

/// A line of a server's standard error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StderrEvent {
    /// The server.
    pub server: String,
    /// The line.
    pub line: String,
}

/// Reads a message that serde has buffered to find the kind of its event.
fn buffered<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    Ok(Option::<serde_json::Value>::deserialize(deserializer)?.map(RawJson::from))
}
