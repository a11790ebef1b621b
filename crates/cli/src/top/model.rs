use std::collections::{BTreeMap, HashMap, VecDeque};

use trunkline_hub::events::{
    CallEndEvent, CallOutcome, CallStartEvent, ClientEvent, EventBody, HubEvent, ServerStateEvent,
};

use super::statistics::CallStatistics;
use crate::admin::{HubReport, ServerState, SessionReport};

/// The most calls that are kept.
const MAX_CALLS: usize = 1000;

/// The most clients that are kept; the ones that were silent for longest are forgotten.
const MAX_CLIENTS: usize = 500;

/// What is known of a hub: its servers, clients and last calls. Times are in microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopModel {
    pub(super) version: String,
    pub(super) pid: u32,
    pub(super) url: Option<String>,
    pub(super) config: String,
    pub(super) servers: Vec<TopServer>,
    pub(super) clients: BTreeMap<String, TopClient>,
    /// The oldest first.
    pub(super) calls: VecDeque<TopCall>,
    /// The number of the first of `calls`.
    first_call: u64,
    /// The numbers of the calls that run, by their names.
    running: HashMap<String, u64>,
    pub(super) total: CallStatistics,
    /// The events that were lost.
    pub(super) dropped: u64,
}

/// A server.
#[derive(Clone, Debug, Default)]
pub(super) struct TopServer {
    pub(super) state: ServerState,
    pub(super) calls: CallStatistics,
    /// Why it was last not connected.
    pub(super) last_failure: Option<String>,
}

/// A client.
#[derive(Clone, Debug, Default)]
pub(super) struct TopClient {
    pub(super) name: String,
    pub(super) revision: Option<String>,
    pub(super) transport: Option<String>,
    pub(super) principal: Option<String>,
    pub(super) calls: u64,
    pub(super) last_seen: i64,
    /// Whether it has a session or a connection, and not only sent requests.
    pub(super) is_connected: bool,
}

/// A call.
#[derive(Clone, Debug)]
pub(super) struct TopCall {
    pub(super) start: CallStartEvent,
    pub(super) started_at: i64,
    /// As in RFC 3339.
    pub(super) time: String,
    pub(super) end: Option<CallEndEvent>,
    /// The method of the input request that it waits for.
    pub(super) waits_for: Option<String>,
}

impl TopCall {
    /// Returns the name of the client, or else its id.
    pub(super) fn client(&self) -> &str {
        let client = self.start.client_name.as_ref().or(self.start.client.as_ref());
        client.map_or("-", String::as_str)
    }

    /// Returns the item as the client named it, or else the method.
    pub(super) fn title(&self) -> &str {
        self.start.name.as_ref().or(self.start.item.as_ref()).unwrap_or(&self.start.method)
    }

    pub(super) fn is_error(&self) -> bool {
        self.end.as_ref().is_some_and(|end| is_error(end.outcome))
    }

    /// Returns the outcome in a word.
    pub(super) fn status(&self) -> &'static str {
        match (&self.end, &self.waits_for) {
            (Some(end), _) => outcome_name(end.outcome),
            (None, Some(_)) => "asking",
            (None, None) => "running",
        }
    }
}

pub(super) fn is_error(outcome: CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Error | CallOutcome::ToolError)
}

/// Returns the name of an outcome, as in record files.
pub(super) fn outcome_name(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Ok => "ok",
        CallOutcome::ToolError => "tool_error",
        CallOutcome::Error => "error",
        CallOutcome::Cancelled => "cancelled",
        CallOutcome::InputRequired => "input_required",
    }
}

impl TopModel {
    /// Takes over the report of a hub. Servers that are not in it are forgotten.
    pub(crate) fn apply_report(&mut self, report: HubReport) {
        let mut known: HashMap<String, TopServer> =
            self.servers.drain(..).map(|server| (server.state.name.clone(), server)).collect();
        for state in report.servers {
            let mut server = known.remove(&state.name).unwrap_or_default();
            if let Some(reason) = &state.reason {
                server.last_failure = Some(reason.clone());
            }
            self.servers.push(TopServer { state, ..server });
        }
        self.version = report.version;
        self.pid = report.pid;
        self.url = report.url;
        self.config = report.config;
    }

    /// Takes over the sessions of a hub.
    pub(crate) fn apply_sessions(&mut self, report: SessionReport, now: i64) {
        for session in report.sessions {
            let idle = i64::try_from(session.idle_s.unwrap_or(session.age_s)).unwrap_or(i64::MAX);
            let last_seen = now.saturating_sub(idle.saturating_mul(1_000_000));
            let client = self.clients.entry(session.id.clone()).or_insert_with(|| TopClient {
                name: session.client.unwrap_or(session.id),
                principal: Some(session.principal),
                last_seen,
                ..TopClient::default()
            });
            client.revision = Some(session.revision);
            client.transport = Some(session.transport);
            client.last_seen = client.last_seen.max(last_seen);
            client.is_connected = true;
        }
        self.forget_clients();
    }

    /// Takes over an event.
    pub(crate) fn apply(&mut self, event: &HubEvent) {
        let at = event.time.as_micros();
        match &event.body {
            EventBody::CallStarted(start) => self.begin_call(start, at, event.time.to_string()),
            EventBody::CallEnded(end) => self.end_call(end, at),
            EventBody::InputRequested(input) => {
                let method = input.method.clone().unwrap_or_else(|| "input".to_owned());
                self.set_waiting(&input.call, Some(method));
            }
            EventBody::InputAnswered(input) => self.set_waiting(&input.call, None),
            EventBody::ClientConnected(client) => self.connect_client(client, at),
            EventBody::ClientGone(client) => drop(self.clients.remove(&client.client)),
            EventBody::ServerState(state) => self.change_state(state),
            EventBody::Dropped { count } => self.dropped += count,
            _ => {}
        }
    }

    fn begin_call(&mut self, start: &CallStartEvent, at: i64, time: String) {
        let number = self.first_call + u64::try_from(self.calls.len()).unwrap_or(0);
        self.running.insert(start.call.clone(), number);
        let call = TopCall { start: start.clone(), started_at: at, time, end: None, waits_for: None };
        let id = start.client.clone().or_else(|| start.client_name.clone());
        if let Some(id) = id {
            let known = self
                .clients
                .entry(id)
                .or_insert_with(|| TopClient { name: call.client().to_owned(), ..TopClient::default() });
            known.calls += 1;
            known.last_seen = at;
        }
        self.calls.push_back(call);
        while self.calls.len() > MAX_CALLS {
            let forgotten = self.calls.pop_front();
            let number = self.first_call;
            self.first_call += 1;
            if let Some(forgotten) = forgotten
                && self.running.get(&forgotten.start.call) == Some(&number)
            {
                self.running.remove(&forgotten.start.call);
            }
        }
        self.forget_clients();
    }

    fn end_call(&mut self, end: &CallEndEvent, at: i64) {
        let number = self.running.remove(&end.call);
        let Some(call) = number.and_then(|number| self.call_mut(number)) else { return };
        call.end = Some(end.clone());
        let server = call.start.server.clone();
        // It goes on in another request.
        if end.outcome == CallOutcome::InputRequired {
            return;
        }
        self.total.record(at, end.micros, is_error(end.outcome));
        if let Some(server) = self.servers.iter_mut().find(|known| known.state.name == server) {
            server.calls.record(at, end.micros, is_error(end.outcome));
        }
    }

    fn set_waiting(&mut self, call: &str, method: Option<String>) {
        let number = self.running.get(call).copied();
        if let Some(call) = number.and_then(|number| self.call_mut(number)) {
            call.waits_for = method;
        }
    }

    fn call_mut(&mut self, number: u64) -> Option<&mut TopCall> {
        let place = usize::try_from(number.checked_sub(self.first_call)?).ok()?;
        self.calls.get_mut(place)
    }

    fn connect_client(&mut self, event: &ClientEvent, at: i64) {
        let name = match (&event.name, &event.version) {
            (Some(name), Some(version)) => format!("{name} {version}"),
            (Some(name), None) => name.clone(),
            (None, _) => event.client.clone(),
        };
        let calls = self.clients.get(&event.client).map_or(0, |known| known.calls);
        let client = TopClient {
            name,
            revision: event.revision.clone(),
            transport: event.transport.clone(),
            principal: Some(event.principal.clone()),
            calls,
            last_seen: at,
            is_connected: true,
        };
        self.clients.insert(event.client.clone(), client);
        self.forget_clients();
    }

    fn change_state(&mut self, event: &ServerStateEvent) {
        let Some(server) = self.servers.iter_mut().find(|known| known.state.name == event.server) else {
            return;
        };
        server.state.state.clone_from(&event.state);
        server.state.reason.clone_from(&event.reason);
        if let Some(reason) = &event.reason {
            server.last_failure = Some(reason.clone());
        }
        if event.revision.is_some() {
            server.state.revision.clone_from(&event.revision);
        }
        if event.transport.is_some() {
            server.state.transport.clone_from(&event.transport);
        }
    }

    fn forget_clients(&mut self) {
        while self.clients.len() > MAX_CLIENTS {
            let oldest =
                self.clients.iter().min_by_key(|(_, client)| (client.is_connected, client.last_seen));
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return };
            self.clients.remove(&oldest);
        }
    }

    /// Returns how many calls run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns how much is kept: calls, names of running calls, and clients.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.calls.len(), self.running.len(), self.clients.len())
    }
}
