use std::fmt;

use serde::Serialize;
use trunkline_hub::CallFigureReport;

use crate::sessions::ConsoleRole;

/// A server of the hub, for the overview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConsoleServer {
    /// Its name in the configuration.
    pub name: String,
    /// Its connection state, such as `ready`.
    pub state: String,
    /// Why it is not available, or why it last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The negotiated revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport, such as `stdio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// How often it was connected.
    pub starts: u64,
    /// The tools of its last listing.
    pub tools: usize,
    /// The connections, and so processes, that there are.
    pub connections: usize,
    /// The calls that run.
    pub running: usize,
    /// The calls that wait for a connection.
    pub waiting: usize,
    /// In how many milliseconds it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Whether the hub leaves it out, so that it can be neither switched nor restarted.
    pub is_excluded: bool,
}

/// What is known of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConsoleServerDetails {
    /// Its state.
    #[serde(flatten)]
    pub server: ConsoleServer,
    /// How it is reached, with variables by name and not by value.
    pub reach: String,
    /// What it calls itself, and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// What it declared to support, such as `tools (listChanged), prompts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<String>,
    /// Its instructions for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What its program printed last outside of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What of its lists could not be taken, each with the reason.
    pub left_out: Vec<String>,
    /// What of its lists was malformed or too long, and is offered without that, each with the reason.
    pub repaired: Vec<String>,
    /// The tools that it offers.
    pub offered_tools: Vec<ConsoleItem>,
    /// The prompts that it offers.
    pub offered_prompts: Vec<ConsoleItem>,
    /// The resources and resource templates that it offers.
    pub offered_resources: Vec<ConsoleItem>,
    /// How many more items there are than these lists have.
    pub more_items: usize,
}

/// An item that a server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConsoleItem {
    /// The name by which clients use it, or the URI of a resource.
    pub name: String,
    /// Its name at the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub upstream_name: String,
    /// Its title, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The beginning of its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The bytes that describe it to a model.
    pub bytes: usize,
}

/// What the tools of a server cost a model, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConsoleServerCost {
    /// Its name in the configuration.
    pub name: String,
    /// How many tools it offers.
    pub tools: usize,
    /// The bytes that describe all of them to a model.
    pub definition_bytes: usize,
    /// Those with the longest definitions.
    pub largest: Vec<ConsoleItem>,
    /// The calls since the start of the hub that were not cancelled.
    pub calls: u64,
    /// The bytes of their results.
    pub result_bytes: u64,
}

/// Where the console learns of the servers.
pub trait ServerReports: fmt::Debug + Send + Sync {
    /// Returns the state of every server.
    fn servers(&self) -> Vec<ConsoleServer>;

    /// Returns what is known of one server, if there is one of this name.
    fn server(&self, name: &str) -> Option<ConsoleServerDetails>;

    /// Returns the calls of the last hour: the points after a slot, or all.
    fn call_figures(&self, after: Option<u32>) -> Option<CallFigureReport>;

    /// Returns what the tools of each server cost a model.
    fn costs(&self) -> Vec<ConsoleServerCost>;
}

/// What the page learns of the hub.
#[derive(Debug, Serialize)]
pub(crate) struct ConsoleReport<'a> {
    pub(crate) version: &'a str,
    /// The URL of the MCP endpoint.
    pub(crate) endpoint: &'a str,
    pub(crate) role: ConsoleRole,
    /// Whether the session sees everything, or else a user's own calls only.
    pub(crate) sees_all: bool,
    /// Whether there is a stream of events, or else a record file.
    pub(crate) live: bool,
    pub(crate) servers: Vec<ConsoleServer>,
}
